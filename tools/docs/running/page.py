"""Does all that one page shows, from top to bottom."""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import sys
import time
from pathlib import Path
from types import ModuleType

from tools.docs.blocks import Block, blocks_of
from tools.docs.running.commands import INTERRUPT, Command, commands_in, fits
from tools.docs.running.forms import check_form
from tools.docs.running.shell import CommandTookTooLong, Shell

_ROOT = Path(__file__).parents[3]
_WITHIN = 600.0
_PLUGINS = (
    "-p no:schemathesis -p no:hypothesispytest -p no:cacheprovider -o asyncio_default_fixture_loop_scope=function"
)
"""An environment with nothing but Pilothouse and pytest has none of these plugins."""
_READY = ("is ready", "http://")


class PageFailed(Exception):
    """Something on a page is not as it says; the message begins with the place."""


class PageRun:
    """Files go into `folder / "work"`, where commands run and `examples` and `deploy` are; the home is beside it."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self._folder = folder
        self._work = folder / "work"
        self._shell: Shell | None = None
        self._module = ModuleType("page")
        self._loop = asyncio.Runner()

    def run(self) -> None:
        """Raises PageFailed at the first thing that is not as the page says."""
        for name in ("work", "home", "notes"):
            (self._folder / name).mkdir()
        for name in ("examples", "deploy"):
            (self._work / name).symlink_to(_ROOT / name)
        os.environ.update(_environment(self._folder))
        os.chdir(self._work)
        sys.modules[self._module.__name__] = self._module  # annotations of its classes are looked up there
        try:
            for block in blocks_of(self.page):
                self._do(block)
        finally:
            self._loop.close()
            if self._shell:
                self._shell.close()

    def _do(self, block: Block) -> None:
        try:
            check_form(block)
        except ValueError as error:
            raise PageFailed(f"{block.place}: {error}") from None
        if block.no_run:
            print(f"{block.place}: not run: {block.no_run}")
        elif block.title:
            self._write(block)
        elif block.language == "console":
            for command in commands_in(block.text):
                self._command(command, f"{block.page}:{block.line + command.line - 1}")
        elif block.language == "python":
            self._python(block)

    def _write(self, block: Block) -> None:
        target = (self._work / block.title).resolve()
        if not target.is_relative_to(self._work.resolve()):
            raise PageFailed(f"{block.place}: {block.title} is not in the page's folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text)

    def _command(self, command: Command, place: str) -> None:
        self._shell = shell = self._shell or Shell(self._work, self._folder / "notes", dict(os.environ))
        if command.text == INTERRUPT:
            shell.interrupt()
        elif command.goes_on:
            self._await(command, shell, place)
        else:
            self._complete(command, shell, place)

    def _complete(self, command: Command, shell: Shell, place: str) -> None:
        try:
            code, output = shell.run(command.text, within=_WITHIN)
        except CommandTookTooLong as error:
            raise PageFailed(
                f"{place}: $ {command.text}\ndid not end within {_WITHIN:g} s. It printed:\n{error}"
            ) from None
        wanted = any(line.strip() not in ("", "...") for line in command.expected)
        if command.expected and not fits(command.expected, output):
            raise PageFailed(_difference(command, place, output))
        if code and not wanted:
            raise PageFailed(f"{place}: $ {command.text}\nended with {code}. It printed:\n{output}")

    def _await(self, command: Command, shell: Shell, place: str) -> None:
        """Begin a command that goes on, and wait for what it is to print, or until it says that it is ready."""
        log, deadline = shell.begin(command.text), time.monotonic() + _WITHIN
        while not _has_begun(command, output := log.read_text()):
            if time.monotonic() > deadline or not shell.runs():
                raise PageFailed(_difference(command, place, output))
            time.sleep(0.05)

    def _python(self, block: Block) -> None:
        if self._shell:
            os.environ.update(self._shell.environment())
        before = set(vars(self._module))
        code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        try:
            self._evaluate(code)
            for name in vars(self._module).keys() - before:
                self._test(name, block)
        except Exception as error:
            raise PageFailed(f"{block.place}: {type(error).__name__}: {error}") from error

    def _evaluate(self, code: object) -> None:
        result = eval(code, vars(self._module))  # type: ignore[arg-type]
        if inspect.iscoroutine(result):
            self._loop.run(result)

    def _test(self, name: str, block: Block) -> None:
        """A test that a block defines is run; one that asks for fixtures needs a title, and a command that runs it."""
        test = getattr(self._module, name)
        if not (name.startswith("test_") and inspect.isfunction(test)):
            return
        if inspect.signature(test).parameters:
            raise PageFailed(f"{block.place}: {name} is not run: give the block a title, and run pytest")
        result = test()
        if inspect.iscoroutine(result):
            self._loop.run(result)


def _has_begun(command: Command, output: str) -> bool:
    if command.expected:
        return fits(command.expected, output, so_far=True)
    return command.text.endswith("&") or any(word in output for word in _READY)


def _difference(command: Command, place: str, output: str) -> str:
    expected = "\n".join(command.expected)
    return f"{place}: $ {command.text}\n--- the page shows\n{expected}\n--- it printed\n{output}"


def _environment(folder: Path) -> dict[str, str]:
    """Return what the commands of a page find: this checkout's `pilothouse` and `python`, and no other cluster."""
    for name in ("KUBECONFIG", "PYTHONDONTWRITEBYTECODE"):
        os.environ.pop(name, None)
    return {
        "HOME": str(folder / "home"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(_ROOT),
        "PYTEST_ADDOPTS": _PLUGINS,
        "NO_COLOR": "1",
        "TERM": "dumb",
    }

"""Build the console's page from `console/` into the package.

The build hook of the package (`hatch_build.py`) calls this module. npm installs esbuild and the libraries of the page,
without the development dependencies; esbuild bundles them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

_MADE_FROM: Final = ("build.mjs", "index.html", "package-lock.json", "package.json", "public", "src", "tsconfig.json")
_INSTALL: Final = ["ci", "--omit=dev", "--prefer-offline", "--fetch-retries=1", "--fetch-retry-mintimeout=500"]
_CODE: Final = re.compile(r"^npm (?:error|ERR!) code (\S+)$", re.MULTILINE)
PATIENCE: Final = 10.0
"""Seconds without a byte from npm's registry. A download that is slow but goes on is not given up."""
_BUILD_PATIENCE: Final = 60.0


class NotBuilt(Exception):
    """The message says why in a phrase."""


def build_page(console: Path, page: Path, *, patience: float = PATIENCE) -> None:
    """Build the page unless it is newer than its sources. Raises NotBuilt."""
    if _is_current(page, console):
        return
    npm = shutil.which("npm")
    if npm is None:
        raise NotBuilt("npm was not found")
    try:
        if not _has_dependencies(console):
            _run([npm, *_INSTALL], console, patience)
        _run([npm, "run", "build"], console, _BUILD_PATIENCE)
    except OSError as error:
        raise NotBuilt(str(error)) from error


def tell_installer(message: str) -> None:
    """Write a line to the terminal, if there is one. pip hides the output of builds that succeed."""
    path = os.ctermid() if hasattr(os, "ctermid") else "CON"
    with suppress(OSError), open(path, "w") as terminal:
        terminal.write(f"\n{message}\n")


def _is_current(page: Path, console: Path) -> bool:
    index = page / "index.html"
    sources = (path for name in _MADE_FROM for path in (console / name, *(console / name).rglob("*")))
    return index.is_file() and all(path.stat().st_mtime <= index.stat().st_mtime for path in sources if path.is_file())


def _has_dependencies(console: Path) -> bool:
    """Return whether `node_modules` has what the lock file asks for, so that npm need not reinstall it."""
    installed = _locked(console / "node_modules" / ".package-lock.json")
    wanted = _locked(console / "package-lock.json")
    return all(installed.get(name) == version for name, version in wanted.items())


def _locked(lock: Path) -> dict[str, str]:
    """Return the versions of the packages that the page needs on every platform."""
    packages: dict[str, dict[str, Any]] = {}
    with suppress(FileNotFoundError, ValueError):
        packages = json.loads(lock.read_text())["packages"]
    needed = ((name, package) for name, package in packages.items() if name)
    return {name: package["version"] for name, package in needed if not (package.get("dev") or package.get("optional"))}


def _run(words: list[str], console: Path, patience: float) -> None:
    """Run npm until it ends, or kill its process group once `node_modules` has not grown for `patience` seconds."""
    command = " ".join(["npm", *(word for word in words[1:] if not word.startswith("-"))])
    with TemporaryFile() as output:
        process = subprocess.Popen(
            words, cwd=console, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            for _ in _while_growing(console / "node_modules", patience):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
                    break
            else:
                raise NotBuilt(f"`{command}` made no progress for {patience:g} s")
        finally:
            if process.poll() is None:
                _kill(process)
                process.wait()
        if process.returncode:
            output.seek(0)
            raise NotBuilt(f"`{command}` failed: {_reason(output.read().decode(errors='replace'))}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group; Windows has none."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _while_growing(folder: Path, patience: float) -> Iterator[None]:
    """Yield until the folder has had the same size for `patience` seconds."""
    size, since = -1, time.monotonic()
    while time.monotonic() - since < patience:
        yield
        if (now := _size(folder)) != size:
            size, since = now, time.monotonic()


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # npm moves folders while it works
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _reason(output: str) -> str:
    """Return npm's error code, or the last line of another program."""
    code = _CODE.search(output)
    return code[1] if code else (output.strip().splitlines() or ["it printed nothing"])[-1]

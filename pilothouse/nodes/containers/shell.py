"""A shell: lists, pipes, redirections and variables, for the programs that there are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.containers.files import FileProblem
from pilothouse.nodes.containers.process import Given, Input, Kept, Output, Process
from pilothouse.nodes.containers.programs import PROGRAMS
from pilothouse.nodes.containers.words import BadSyntax, NotSupported, Sign, words
from pilothouse.nodes.pods.commands import EXIT_CODE

SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
NOT_FOUND: Final = 127
NOT_RUNNABLE: Final = 126
_MAX_SCRIPT: Final = 64 * 1024
_REDIRECTIONS: Final = (">", "1>", ">>", "<", "2>")
_TO_ERRORS: Final = (">&2", "1>&2")
_ENDS: Final = (";", "\n", "&", "&&", "||")
_KEYWORDS: Final = frozenset({"while", "until", "for", "if", "case", "function", "{", "("})


class CommandNotFound(Exception):
    """There is no program of this name."""


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def run_command(process: Process) -> int:
    """Run the program that the process is for; return its exit code. Raises CommandNotFound, NotSupported, NoRoom."""
    if process.name in SHELLS:
        return await _run_shell(process)
    if process.name not in PROGRAMS:
        raise CommandNotFound(process.words[0])
    return await PROGRAMS[process.name](process)


async def _run_shell(process: Process) -> int:
    match process.arguments:
        case [option, script, *_] if option.startswith("-") and option.endswith("c"):
            return await Shell(process).run(script)
        case [name] if not name.startswith("-"):
            try:
                script = process.container.files.read(process.path(name)).decode("utf-8", "replace")
            except FileProblem as problem:
                await process.complain(f"can't open '{name}': {problem}")
                return NOT_FOUND
            return await Shell(process).run(script)
    return await _run_lines(process)


async def _run_lines(process: Process) -> int:
    """Runs each line of the input as it comes."""
    shell, rest = Shell(process), b""
    await process.say(process.prompt)
    while data := await process.stdin.read():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            await shell.run(line.decode("utf-8", "replace"))
            if shell.is_over:
                return shell.code
            await process.say(process.prompt)
    return await shell.run(rest.decode("utf-8", "replace"))


@dataclass(slots=True)
class _Command:
    words: list[str] = field(default_factory=list)
    redirections: list[tuple[str, str]] = field(default_factory=list)
    merges_errors: bool = False
    only_errors: bool = False
    """All that it writes, it writes as errors."""


class Shell:
    def __init__(self, process: Process) -> None:
        self._process = process
        self.code = 0
        self.is_over = False
        """Whether `exit` was called."""

    async def run(self, script: str) -> int:
        """Return the exit code of the last command."""
        if len(script) > _MAX_SCRIPT:
            await self._process.complain("argument list too long")
            return NOT_RUNNABLE
        try:
            await self._run_list(words(script, self._lookup))
        except BadSyntax as problem:
            await self._process.stderr.write(f"{self._process.name}: syntax error: {problem}\n".encode())
            self.code = 2
        except _Exit as leave:
            self.code, self.is_over = leave.code, True
        return self.code

    def _lookup(self, name: str) -> str:
        return str(self.code) if name == "?" else self._process.container.environment.get(name, "")

    async def _run_list(self, tokens: Iterator[str | Sign]) -> None:
        end: str | None = ""
        while end is not None:
            before = end
            pipeline, end = _pipeline(tokens)
            skipped = (before == "&&" and self.code != 0) or (before == "||" and self.code == 0)
            if any(command.words or command.redirections for command in pipeline) and not skipped:
                self.code = await self._run_pipeline(pipeline)
                await asyncio.sleep(0)  # a script may be long

    async def _run_pipeline(self, pipeline: list[_Command]) -> int:
        stdin, code = self._process.stdin, 0
        for number, command in enumerate(pipeline):
            is_last = number == len(pipeline) - 1
            piped = Kept()
            code = await self._run_redirected(command, stdin, self._process.stdout if is_last else piped)
            stdin = Given(bytes(piped.data))
        return code

    async def _run_redirected(self, command: _Command, stdin: Input, stdout: Output) -> int:
        stderr: Output = stdout if command.merges_errors else self._process.stderr
        stdout = self._process.stderr if command.only_errors else stdout
        kept: list[tuple[str, str, Kept]] = []
        for sign, name in command.redirections:
            if sign == "<":
                try:
                    stdin = Given(self._process.container.files.read(self._process.path(name)))
                except FileProblem as problem:
                    return await self._process.complain(f"can't open {name}: {problem}")
                continue
            kept.append((sign, name, target := Kept()))
            stdout, stderr = (stdout, target) if sign == "2>" else (target, stderr)
        code = await self._run_one(command.words, stdin, stdout, stderr)
        return await self._store(kept) or code

    async def _store(self, kept: list[tuple[str, str, Kept]]) -> int:
        files = self._process.container.files
        for sign, name, target in kept:
            path = self._process.path(name)
            try:
                before = files.read(path) if sign == ">>" and files.exists(path) else b""
                files.write(path, before + bytes(target.data))
            except FileProblem as problem:
                return await self._process.complain(f"can't create {name}: {problem}")
        return 0

    async def _run_one(self, given: list[str], stdin: Input, stdout: Output, stderr: Output) -> int:
        environment = self._process.container.environment
        while given and _is_assignment(given[0]):
            name, _, value = given[0].partition("=")
            environment[name], given = value, given[1:]
        if not given:
            return 0
        if given[0] in _KEYWORDS or given[0].endswith("()"):
            raise NotSupported(given[0])
        process = replace(self._process, words=given, stdin=stdin, stdout=stdout, stderr=stderr)
        match given:
            case ["exit", *rest]:
                raise _Exit(int(rest[0]) % 256 if rest and EXIT_CODE.fullmatch(rest[0]) else self.code)
            case ["cd", *rest]:
                return await self._change_directory(process, rest[0] if rest else "/root")
            case ["export", *pairs]:
                environment.update(
                    {name: value for name, sign, value in (each.partition("=") for each in pairs) if sign}
                )
                return 0
            case [":" | "set" | "trap" | "wait", *_]:
                return 0
            case ["exec", *rest] if rest:
                process = replace(process, words=rest)
        try:
            return await run_command(process)
        except CommandNotFound as missing:
            await stderr.write(f"{self._process.name}: {missing}: not found\n".encode())
            return NOT_FOUND

    async def _change_directory(self, process: Process, name: str) -> int:
        path = process.path(name)
        if not process.container.files.is_directory(path):
            return await process.complain(f"can't cd to {name}: No such file or directory")
        self._process.container.directory = path
        return 0


def _is_assignment(word: str) -> bool:
    name, sign, _ = word.partition("=")
    return bool(sign) and name.isidentifier()


def _pipeline(tokens: Iterator[str | Sign]) -> tuple[list[_Command], str | None]:
    """Return the commands up to the next sign between pipelines, and that sign; None at the end. Raises BadSyntax."""
    commands = [_Command()]
    for token in tokens:
        if isinstance(token, str):
            commands[-1].words.append(token)
        elif token.text == "|":
            commands.append(_Command())
        elif token.text in _ENDS:
            return commands, token.text
        elif token.text == "2>&1":
            commands[-1].merges_errors = True
        elif token.text in _TO_ERRORS:
            commands[-1].only_errors = True
        elif token.text in _REDIRECTIONS:
            name = next(tokens, None)
            if not isinstance(name, str):
                raise BadSyntax("expected a file name")
            commands[-1].redirections.append((token.text, name))
    return commands, None

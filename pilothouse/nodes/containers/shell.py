"""A shell: lists, pipes, redirections and variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.containers.budget import Holding, memory_of
from pilothouse.nodes.containers.container import ArgumentsTooLong, check_arguments
from pilothouse.nodes.containers.files import FileProblem
from pilothouse.nodes.containers.process import Given, Input, Kept, Lines, Output, Process
from pilothouse.nodes.containers.programs import PROGRAMS
from pilothouse.nodes.containers.words import BadSyntax, NotSupported, Sign, words

SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
NOT_FOUND: Final = 127
NOT_RUNNABLE: Final = 126
_MAX_SCRIPT: Final = 64 * 1024
_LONGEST_NAME: Final = 4096
"""Maximum length of a variable name or file name."""
_DEEPEST: Final = 32
"""Maximum nesting of shells."""
_WORD, _COMMAND = 128, 1024
"""Overhead in bytes of a word and of a command."""
_REDIRECTIONS: Final = (">", "1>", ">>", "<", "2>")
_TO_ERRORS: Final = (">&2", "1>&2")
_ENDS: Final = (";", "\n", "&", "&&", "||")
_KEYWORDS: Final = frozenset({"while", "until", "for", "if", "case", "function", "{", "("})


class CommandNotFound(Exception):
    """The shell knows no program of this name."""


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def run_command(process: Process) -> int:
    """Run the program of the process, and return its exit code.

    Raises CommandNotFound, NotSupported, ArgumentsTooLong or Killed.
    """
    check_arguments(process.words)
    await process.budget.spend(data=sum(map(len, process.words)))
    if process.name in SHELLS:
        return await _run_shell(process)
    if process.name not in PROGRAMS:
        raise CommandNotFound(process.words[0])
    return await PROGRAMS[process.name](process)


async def _run_shell(process: Process) -> int:
    if process.depth >= _DEEPEST:
        await process.complain("can't fork: Resource temporarily unavailable")
        return 2
    process = replace(process, depth=process.depth + 1)
    match process.arguments:
        case [option, script, *_] if option.startswith("-") and option.endswith("c"):
            return await Shell(process).run(script)
        case [name] if not name.startswith("-"):
            try:
                contents = process.container.files.read(process.path(name))
            except FileProblem as problem:
                await process.complain(f"can't open '{name}': {problem}")
                return NOT_FOUND
            return await Shell(process).run(contents[: 4 * _MAX_SCRIPT + 1].decode("utf-8", "replace"))
    # Run each line of the input as it arrives.
    shell, lines = Shell(process), Lines(process.stdin, process.budget)
    await process.say(process.prompt)
    while not shell.is_over and (line := await lines.read()):
        await shell.run(line.decode("utf-8", "replace"))
        if line.endswith(b"\n") and not shell.is_over:
            await process.say(process.prompt)
    return shell.code


@dataclass(slots=True)
class _Command:
    words: list[str] = field(default_factory=list)
    redirections: list[tuple[str, str]] = field(default_factory=list)
    merges_errors: bool = False
    only_errors: bool = False
    """Whether stdout goes to stderr."""

    def take(self, word: str, redirection: str) -> None:
        """Add a word, or the file name of a redirection."""
        if redirection:
            self.redirections.append((redirection, word))
        else:
            self.words.append(word)

    def redirect(self, sign: str) -> str:
        """Return the sign if a file name must follow, else ""."""
        if sign in _REDIRECTIONS:
            return sign
        self.merges_errors = self.merges_errors or sign == "2>&1"
        self.only_errors = self.only_errors or sign in _TO_ERRORS
        return ""


class Shell:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._expanded = Holding(process.budget)
        """Expanded variables of the current pipeline."""
        self.code = 0
        self.is_over = False
        """Whether `exit` was called."""

    async def run(self, script: str) -> int:
        """Run the script, and return the exit code of the last command."""
        if len(script) > _MAX_SCRIPT:
            await self._process.complain("argument list too long")
            return NOT_RUNNABLE
        try:
            tokens = words(script, self._lookup)
            end: str | None = ""
            while end is not None:
                before = end
                await self._process.budget.spend()
                with self._expanded:
                    pipeline, end = await self._pipeline(tokens)
                    skipped = (before == "&&" and self.code != 0) or (before == "||" and self.code == 0)
                    if any(command.words or command.redirections for command in pipeline) and not skipped:
                        self.code = await self._run_pipeline(pipeline)
        except BadSyntax as problem:
            await self._process.complain(f"syntax error: {problem}")
            self.code = 2
        except _Exit as leave:
            self.code, self.is_over = leave.code, True
        return self.code

    def _lookup(self, name: str) -> str:
        if name == "?":
            return str(self.code)
        value = self._process.container.environment.get(name, "")
        self._expanded.add(memory_of(value))
        return value

    async def _pipeline(self, tokens: Iterator[str | Sign | None]) -> tuple[list[_Command], str | None]:
        """Return the commands of the next pipeline and the separator after it; None at the end.

        Raises BadSyntax, NotSupported or Killed.
        """
        commands, needs_name = [_Command()], ""
        for token in tokens:
            if token is None:
                await self._process.budget.spend()
            elif isinstance(token, Sign) and needs_name:
                raise BadSyntax("expected a file name")
            elif not isinstance(token, Sign):
                self._expanded.add(_WORD)
                commands[-1].take(token, needs_name)
                needs_name = ""
            elif token.text in _ENDS:
                return commands, token.text
            elif token.text == "|":
                self._expanded.add(_COMMAND)
                commands.append(_Command())
            else:
                needs_name = commands[-1].redirect(token.text)
        if needs_name:
            raise BadSyntax("expected a file name")
        return commands, None

    async def _run_pipeline(self, pipeline: list[_Command]) -> int:
        stdin, code = self._process.stdin, 0
        budget, before = self._process.budget, Kept(self._process.budget)
        for number, command in enumerate(pipeline):
            await budget.spend()
            piped = Kept(budget)
            is_last = number == len(pipeline) - 1
            code = await self._run_redirected(command, stdin, self._process.stdout if is_last else piped)
            before.release()
            stdin, before = Given(piped.taken(), budget), piped
        return code

    async def _run_redirected(self, command: _Command, stdin: Input, stdout: Output) -> int:
        stderr: Output = stdout if command.merges_errors else self._process.stderr
        stdout = self._process.stderr if command.only_errors else stdout
        kept: list[tuple[str, str, Kept]] = []
        budget = self._process.budget
        for sign, name in command.redirections:
            if len(name) > _LONGEST_NAME:
                return await self._process.complain(f"can't open {name[:_LONGEST_NAME]}: File name too long")
            if sign == "<":
                try:
                    stdin = Given(self._process.container.files.read(self._process.path(name)), budget)
                except FileProblem as problem:
                    return await self._process.complain(f"can't open {name}: {problem}")
                continue
            kept.append((sign, name, target := Kept(budget)))
            stdout, stderr = (stdout, target) if sign == "2>" else (target, stderr)
        code = await self._run_one(command.words, stdin, stdout, stderr)
        try:
            return await self._store(kept) or code
        finally:
            for _, _, target in kept:
                target.release()

    async def _store(self, kept: list[tuple[str, str, Kept]]) -> int:
        files, budget = self._process.container.files, self._process.budget
        for sign, name, target in kept:
            path = self._process.path(name)
            try:
                before = files.read(path) if sign == ">>" and files.exists(path) else b""
                await budget.spend(data=len(before) + len(target.data))
                files.write(path, before + target.data)
            except FileProblem as problem:
                return await self._process.complain(f"can't create {name}: {problem}")
        return 0

    def _assign(self, name: str, value: str) -> None:
        environment = self._process.container.environment
        before = environment.get(name)
        known = _WORD + memory_of(name) if before is None else -memory_of(before)
        self._process.budget.hold(memory_of(value) + known)
        environment[name] = value

    async def _run_one(self, words: list[str], stdin: Input, stdout: Output, stderr: Output) -> int:
        first = next((position for position, word in enumerate(words) if not _is_assignment(word)), len(words))
        for word in words[:first]:
            name, _, value = word.partition("=")
            self._assign(name, value)
        words = words[first:]
        if not words:
            return 0
        try:
            check_arguments(words)
            return await self._run_program(words, stdin, stdout, stderr)
        except CommandNotFound as missing:
            self._process.container.has_unknown_programs = True
            await stderr.write(f"{self._process.name}: {missing}: not found\n".encode("utf-8", "replace"))
            return NOT_FOUND
        except ArgumentsTooLong:
            await stderr.write(f"{self._process.name}: Argument list too long\n".encode())
            return NOT_RUNNABLE

    async def _run_program(self, words: list[str], stdin: Input, stdout: Output, stderr: Output) -> int:
        if words[0] in _KEYWORDS or words[0].endswith("()"):
            raise NotSupported(words[0])
        process = replace(self._process, words=words, stdin=stdin, stdout=stdout, stderr=stderr)
        match words:
            case ["exit", *rest]:
                # 256 divides 10^8, so eight digits determine the remainder.
                raise _Exit(int(rest[0][-8:]) % 256 if rest and rest[0].isdecimal() else self.code)
            case ["cd", *rest]:
                return await self._change_directory(process, rest[0] if rest else "/root")
            case ["export", *pairs]:
                for name, sign, value in (pair.partition("=") for pair in pairs):
                    if sign:
                        self._assign(name, value)
                return 0
            case [":" | "set" | "trap" | "wait", *_]:
                return 0
            case ["exec", *rest] if rest:
                process = replace(process, words=rest)
        return await run_command(process)

    async def _change_directory(self, process: Process, name: str) -> int:
        path = process.path(name)
        if not process.container.files.is_directory(path):
            return await process.complain(f"can't cd to {name}: No such file or directory")
        self._process.container.directory = path
        return 0


def _is_assignment(word: str) -> bool:
    end = word.find("=", 0, _LONGEST_NAME)
    return end > 0 and word[:end].isidentifier()

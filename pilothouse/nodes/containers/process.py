"""A program in a simulated container: its words, its streams and its budget."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, Protocol, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.containers.budget import PIECE, Budget, Cause, Holding, Killed
from pilothouse.nodes.containers.container import Container

Sleep: TypeAlias = Callable[[float], Awaitable[None]]

_BATCH: Final = 16 * 1024
_LONGEST_LINE: Final = 1 << 20


class Input(Protocol):
    async def read(self) -> bytes:
        """Return the next bytes; nothing at the end."""


class Output(Protocol):
    async def write(self, data: bytes) -> None:
        """Raises OSError where nobody reads any more."""


class NoInput:
    async def read(self) -> bytes:
        return b""


@dataclass(frozen=True, slots=True)
class MeteredInput:
    """Input from outside of the container, charged to a process."""

    source: Input
    budget: Budget

    async def read(self) -> bytes:
        data = await self.budget.outside(self.source.read())
        await self.budget.spend(data=len(data))
        return data


@dataclass(frozen=True, slots=True)
class MeteredOutput:
    """Output that leaves the container, charged to a process. Long output leaves in pieces."""

    target: Output
    budget: Budget

    async def write(self, data: bytes) -> None:
        for begin in range(0, len(data), PIECE):
            piece = data[begin : begin + PIECE]
            self.budget.write(len(piece))
            await self.budget.spend(data=len(piece))
            await self.budget.outside(self.target.write(piece))


class Given:
    """Input that is there at once, read in pieces."""

    def __init__(self, data: bytes, budget: Budget) -> None:
        self._data, self._budget = data, budget
        self._place = 0

    async def read(self) -> bytes:
        piece = self._data[self._place : self._place + PIECE]
        self._place += len(piece)
        await self._budget.spend(data=len(piece))
        return piece


class Kept:
    """Output that is read later. The process holds it."""

    def __init__(self, budget: Budget) -> None:
        self.data = bytearray()
        self._budget, self._held = budget, Holding(budget)

    async def write(self, data: bytes) -> None:
        """Raises Killed where it is too much."""
        self._budget.write(len(data))
        await self._budget.spend(data=len(data))
        self._held.add(len(data))
        self.data += data

    def taken(self) -> bytes:
        """Return the output, which the process holds until `release`."""
        data, self.data = bytes(self.data), bytearray()
        return data

    def release(self) -> None:
        self.data = bytearray()
        self._held.release()


@dataclass(frozen=True, slots=True)
class Process:
    words: list[str]
    """The program's name, and its arguments."""
    container: Container
    stdin: Input
    stdout: Output
    stderr: Output
    sleep: Sleep
    budget: Budget
    prompt: str = ""
    """Text that a shell writes before it reads a line from a terminal."""
    depth: int = 0
    """Number of shells around this process."""

    @property
    def name(self) -> str:
        return self.words[0].rsplit("/", 1)[-1]

    @property
    def arguments(self) -> list[str]:
        return self.words[1:]

    def path(self, name: str) -> str:
        """Return the absolute path of a file that is named from the working directory."""
        joined = posixpath.normpath(posixpath.join(self.container.directory, name))
        return "/" + joined.lstrip("/")

    async def say(self, text: str) -> None:
        await self.stdout.write(text.encode("utf-8", "replace"))

    async def say_lines(self, lines: Iterable[str]) -> None:
        """Write lines, each charged as a step."""
        batch = bytearray()
        for line in lines:
            await self.budget.spend(data=len(line))
            batch += f"{line}\n".encode("utf-8", "replace")
            if len(batch) >= _BATCH:
                await self.stdout.write(bytes(batch))
                batch.clear()
        await self.stdout.write(bytes(batch))

    async def complain(self, problem: object) -> int:
        """Write the problem; return the exit code of a program that failed."""
        await self.stderr.write(f"{self.name}: {problem}\n".encode("utf-8", "replace"))
        return 1

    def source(self, names: Iterable[str]) -> Input:
        """Return the contents of the files one after the other; the input where there are no names.

        Reading raises FileProblem.
        """
        first = [*names]
        return _Contents(self, iter(first)) if first else self.stdin


@dataclass(slots=True)
class _Contents:
    process: Process
    names: Iterator[str]
    current: Input = NoInput()

    async def read(self) -> bytes:
        while not (piece := await self.current.read()):
            if (name := next(self.names, None)) is None:
                return b""
            contents = self.process.container.files.read(self.process.path(name))
            self.current = Given(contents, self.process.budget)
        return piece


class Lines:
    """The lines of an input, with their ends. Finding them takes linear time."""

    def __init__(self, source: Input, budget: Budget) -> None:
        self._source, self._budget = source, budget
        self._piece, self._place = b"", 0

    async def read(self) -> bytes:
        """Return the next line; nothing at the end. Raises Killed for a line over 1 MiB."""
        await self._budget.spend(steps=0)
        line = bytearray()
        while (end := self._piece.find(b"\n", self._place)) < 0:
            line += self._piece[self._place :]
            if len(line) > _LONGEST_LINE:
                raise Killed(Cause.MEMORY)
            self._piece, self._place = await self._source.read(), 0
            if not self._piece:
                return bytes(line)
        line += self._piece[self._place : end + 1]
        self._place = end + 1
        return bytes(line)


Program: TypeAlias = Callable[[Process], Awaitable[int]]

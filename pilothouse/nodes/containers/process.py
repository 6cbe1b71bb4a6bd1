"""A process in a simulated container: arguments, streams and budget."""

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
        """Return the next bytes; empty at the end."""


class Output(Protocol):
    async def write(self, data: bytes) -> None:
        """Write the bytes. Raises OSError after the reader has gone."""


class NoInput:
    async def read(self) -> bytes:
        return b""


@dataclass(frozen=True, slots=True)
class MeteredInput:
    """Input from outside of the container, charged to the process."""

    source: Input
    budget: Budget

    async def read(self) -> bytes:
        data = await self.budget.outside(self.source.read())
        await self.budget.spend(data=len(data))
        return data


@dataclass(frozen=True, slots=True)
class MeteredOutput:
    """Output that leaves the container, charged to the process and sent in pieces."""

    target: Output
    budget: Budget

    async def write(self, data: bytes) -> None:
        for begin in range(0, len(data), PIECE):
            piece = data[begin : begin + PIECE]
            self.budget.write(len(piece))
            await self.budget.spend(data=len(piece))
            await self.budget.outside(self.target.write(piece))


class CollectedOutput:
    """Keeps the beginning of the output."""

    def __init__(self, most: int) -> None:
        self.data = bytearray()
        self._most = most

    async def write(self, data: bytes) -> None:
        self.data += data[: self._most - len(self.data)]


class Given:
    """Input available at once, read in pieces."""

    def __init__(self, data: bytes, budget: Budget) -> None:
        self._data, self._budget = data, budget
        self._place = 0

    async def read(self) -> bytes:
        piece = self._data[self._place : self._place + PIECE]
        self._place += len(piece)
        await self._budget.spend(data=len(piece))
        return piece


class Kept:
    """Buffered output, held by the process."""

    def __init__(self, budget: Budget) -> None:
        self.data = bytearray()
        self._budget, self._held = budget, Holding(budget)

    async def write(self, data: bytes) -> None:
        """Append to the buffer. Raises Killed if the budget is exceeded."""
        self._budget.write(len(data))
        await self._budget.spend(data=len(data))
        self._held.add(len(data))
        self.data += data

    def taken(self) -> bytes:
        """Return and clear the buffer; the bytes stay charged until `release`."""
        data, self.data = bytes(self.data), bytearray()
        return data

    def release(self) -> None:
        self.data = bytearray()
        self._held.release()


@dataclass(frozen=True, slots=True)
class Process:
    words: list[str]
    """Program name and arguments."""
    container: Container
    stdin: Input
    stdout: Output
    stderr: Output
    sleep: Sleep
    budget: Budget
    prompt: str = ""
    """Shell prompt on a terminal."""
    depth: int = 0
    """Number of enclosing shells."""

    @property
    def name(self) -> str:
        return self.words[0].rsplit("/", 1)[-1]

    @property
    def arguments(self) -> list[str]:
        return self.words[1:]

    def path(self, name: str) -> str:
        """Return the absolute path of a file name."""
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
        """Write the problem to stderr, and return the exit code of a failed program."""
        await self.stderr.write(f"{self.name}: {problem}\n".encode("utf-8", "replace"))
        return 1

    def source(self, names: Iterable[str]) -> Input:
        """Return the concatenated contents of the files; stdin without names.

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
    """Lines of an input, with their terminators, in linear time."""

    def __init__(self, source: Input, budget: Budget) -> None:
        self._source, self._budget = source, budget
        self._piece, self._place = b"", 0

    async def read(self) -> bytes:
        """Return the next line; empty at the end. Raises Killed for lines over 1 MiB."""
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

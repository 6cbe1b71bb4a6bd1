"""What a program in a container is given, and what it makes of it."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.nodes.containers.container import Container

MAX_PIPED: Final = 16 * 1024 * 1024

Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class NoRoom(Exception):
    """A program took more memory than it is given."""


class Input(Protocol):
    async def read(self) -> bytes:
        """Return what comes next; nothing at the end."""


class Output(Protocol):
    async def write(self, data: bytes) -> None:
        """Raises OSError where nobody takes it any more."""


class NoInput:
    async def read(self) -> bytes:
        return b""


class Given:
    """Input that is there at once."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self) -> bytes:
        data, self._data = self._data, b""
        return data


class Kept:
    """Output that somebody else reads later. Raises NoRoom where it is too much."""

    def __init__(self) -> None:
        self.data = bytearray()

    async def write(self, data: bytes) -> None:
        if len(self.data) + len(data) > MAX_PIPED:
            raise NoRoom
        self.data += data


@dataclass(frozen=True, slots=True)
class Process:
    words: list[str]
    """The program's name, and what it is told."""
    container: Container
    stdin: Input
    stdout: Output
    stderr: Output
    sleep: Sleep
    prompt: str = ""
    """What a shell writes before it reads a line, where somebody sits in front of it."""

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
        await self.stdout.write(text.encode())

    async def complain(self, problem: object) -> int:
        """Writes what is wrong; return the exit code of a program that failed."""
        await self.stderr.write(f"{self.name}: {problem}\n".encode())
        return 1

    async def read_all(self) -> bytes:
        """Return the whole input. Raises NoRoom where it is too much."""
        found = Kept()
        while data := await self.stdin.read():
            await found.write(data)
        return bytes(found.data)


Program: TypeAlias = Callable[[Process], Awaitable[int]]

"""A session in a container, independent of the protocol: streams, terminal and final status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import orjson

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.proxy.remote_command import SessionStreams
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.nodes.containers.budget import PIECE
from pilothouse.nodes.containers.process import Input, Output

CREATION_SECONDS: Final = 30.0
"""Seconds for the client to open its streams."""

_INTERRUPT, _END, _BACKSPACES, _ENTER = 0x03, 0x04, (0x08, 0x7F), (0x0A, 0x0D)
_MAX_LINE: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Session:
    stdin: Input
    stdout: Output
    stderr: Output
    tty: bool


Work: TypeAlias = Callable[[Session], Awaitable[Json]]
"""Runs the session, and returns its final Status."""


class Nowhere:
    """Discards output."""

    async def write(self, data: bytes) -> None:
        pass


def wanted_streams(request: Request) -> SessionStreams | None:
    """Return the requested streams; None if the request names none."""
    tty = request.param("tty") == "1"
    streams = SessionStreams(
        stdin=request.param("input") == "1",
        stdout=request.param("output") == "1",
        stderr=request.param("error") == "1" and not tty,
        tty=tty,
    )
    return streams if streams.stdin or streams.stdout or streams.stderr else None


def status_bytes(status: Json, *, as_json: bool) -> bytes:
    """Return the content of the error channel; old protocols carry only the message of a failure."""
    if as_json:
        return orjson.dumps(status)
    return b"" if status["status"] == "Success" else str(status.get("message") or "").encode()


class Interrupted(Exception):
    """The user pressed Ctrl-C."""


class Terminal:
    """Echoes input, and delivers it to the program line by line."""

    def __init__(self, stdin: Input, stdout: Output) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._line = bytearray()
        self._typed, self._place = b"", 0
        self._is_over = False

    async def read(self) -> bytes:
        """Return the next line; empty at the end. Raises Interrupted."""
        while not self._is_over:
            if self._place >= len(self._typed):
                self._typed, self._place = await self._stdin.read(), 0
                self._is_over = not self._typed
            elif line := await self._type():
                return line
        rest, self._line = bytes(self._line), bytearray()
        return rest

    async def _type(self) -> bytes:
        """Process keys up to the end of a line, and return the line; empty if the line is incomplete."""
        echo = bytearray()
        while self._place < len(self._typed):
            key = self._typed[self._place]
            self._place += 1
            if key in _ENTER or (key == _END and not self._line):
                self._is_over = key == _END
                await self._stdout.write(bytes(echo) + (b"" if self._is_over else b"\r\n"))
                line, self._line = bytes(self._line) + (b"" if self._is_over else b"\n"), bytearray()
                return line
            if key == _INTERRUPT:
                await self._stdout.write(bytes(echo) + b"^C\r\n")
                raise Interrupted
            if key in _BACKSPACES:
                echo += b"\b \b" if self._line else b""
                del self._line[-1:]
            elif len(self._line) < _MAX_LINE:
                self._line.append(key)
                echo.append(key)
        await self._stdout.write(bytes(echo))
        return b""

    async def write(self, data: bytes) -> None:
        """Write in pieces: line ends expand each piece up to double size."""
        for begin in range(0, len(data), PIECE):
            await self._stdout.write(data[begin : begin + PIECE].replace(b"\n", b"\r\n"))

"""A stream of a SPDY connection: bytes in both directions, each of which ends on its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pilothouse.apiserver.spdy.frames import Data, ResetStatus, RstStream
from pilothouse.apiserver.spdy.header_block import StreamHeaders

if TYPE_CHECKING:
    from pilothouse.apiserver.spdy.connection import SpdyConnection

_BUFFER: Final = 64 * 1024
_PIECE: Final = 32 * 1024
"""Bytes that one stream sends before others have their turn."""


class _Gate(asyncio.Transport):
    """Stands where a reader has its transport: while much is not read yet, the connection is not read from."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    def pause_reading(self) -> None:
        self.open.clear()

    def resume_reading(self) -> None:
        self.open.set()


class SpdyStream:
    def __init__(self, connection: SpdyConnection, number: int, headers: StreamHeaders) -> None:
        self.id = number
        self.headers = headers
        self.answered = asyncio.Event()
        """Set once the other end has taken the stream, or refused it."""
        self.is_refused = False
        self._connection = connection
        self._gate = _Gate()
        self._received = asyncio.StreamReader(limit=_BUFFER)
        self._received.set_transport(self._gate)
        self._ended = False  # nothing more is received
        self._closed = False  # nothing more is sent

    def header(self, name: str) -> str:
        """Return the first value of the header, whose name is in lower case; or nothing."""
        values = self.headers.get(name) or ("",)
        return values[0]

    @property
    def is_over(self) -> bool:
        return self._ended and self._closed

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._closed

    async def read(self, size: int = _BUFFER) -> bytes:
        """Return what has come, at most `size` bytes; nothing once the other end has closed or reset the stream."""
        return await self._received.read(size)

    async def write(self, data: bytes) -> None:
        """Raises BrokenPipeError when the stream is closed."""
        for begin in range(0, len(data), _PIECE):
            if self._closed:
                raise BrokenPipeError("write on closed stream")
            await self._connection.send(Data(self.id, data[begin : begin + _PIECE]))

    async def close(self) -> None:
        """Sends that nothing more will be sent. What the other end sends can still be read."""
        if not self._closed:
            self._closed = True
            self._connection.forget_when_over(self)
            await self._connection.send(Data(self.id, b"", fin=True))

    async def reset(self, status: ResetStatus = ResetStatus.CANCEL) -> None:
        """Ends both directions, for both ends."""
        if not self.is_over:
            self.end()
            self._connection.forget_when_over(self)
            await self._connection.send(RstStream(self.id, status))

    async def feed(self, data: bytes, *, fin: bool) -> None:
        """Takes what the connection has received for the stream. Returns when there is room for more."""
        if not self._ended:
            if data:
                self._received.feed_data(data)
            if fin:
                self._end_received()
            await self._gate.open.wait()

    def end(self) -> None:
        """Ends both directions here, as when the connection has gone."""
        self._closed = True
        self._end_received()
        if not self.answered.is_set():
            self.is_refused = True
            self.answered.set()

    def _end_received(self) -> None:
        if not self._ended:
            self._ended = True
            self._received.feed_eof()
        self._gate.open.set()

    def __repr__(self) -> str:
        shown: dict[str, Any] = {name: values[0] for name, values in self.headers.items()}
        return f"SpdyStream({self.id}, {shown})"

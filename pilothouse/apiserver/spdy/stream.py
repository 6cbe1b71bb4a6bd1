"""A bidirectional SPDY stream; each direction closes independently."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pilothouse.apiserver.spdy.frames import Data, ResetStatus, RstStream
from pilothouse.apiserver.spdy.header_block import StreamHeaders

if TYPE_CHECKING:
    from pilothouse.apiserver.spdy.connection import SpdyConnection

_BUFFER: Final = 64 * 1024
_PIECE: Final = 32 * 1024
"""Bytes sent per turn of a stream."""


class _Gate(asyncio.Transport):
    """Stands in for the reader's transport: a full buffer pauses the connection."""

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
        """Set after acceptance or rejection by the peer."""
        self.is_refused = False
        self._connection = connection
        self._gate = _Gate()
        self._received = asyncio.StreamReader(limit=_BUFFER)
        self._received.set_transport(self._gate)
        self._ended = False  # receiving direction closed
        self._closed = False  # sending direction closed

    def header(self, name: str) -> str:
        """Return the first value of the lower-case header, or an empty string."""
        values = self.headers.get(name) or ("",)
        return values[0]

    @property
    def is_over(self) -> bool:
        return self._ended and self._closed

    @property
    def is_closed(self) -> bool:
        """Return whether the sending direction is closed."""
        return self._closed

    async def read(self, size: int = _BUFFER) -> bytes:
        """Return up to `size` received bytes; empty after the peer closes or resets the stream."""
        return await self._received.read(size)

    async def write(self, data: bytes) -> None:
        """Send data. Raises BrokenPipeError on a closed stream."""
        for begin in range(0, len(data), _PIECE):
            if self._closed:
                raise BrokenPipeError("write on closed stream")
            await self._connection.send(Data(self.id, data[begin : begin + _PIECE]))

    async def close(self) -> None:
        """Close the sending direction; receiving continues."""
        if not self._closed:
            self._closed = True
            self._connection.forget_when_over(self)
            await self._connection.send(Data(self.id, b"", fin=True))

    async def reset(self, status: ResetStatus = ResetStatus.CANCEL) -> None:
        """Reset both directions for both endpoints."""
        if not self.is_over:
            self.end()
            self._connection.forget_when_over(self)
            await self._connection.send(RstStream(self.id, status))

    async def feed(self, data: bytes, *, fin: bool) -> None:
        """Buffer received data, and wait until the buffer has room."""
        if not self._ended:
            if data:
                self._received.feed_data(data)
            if fin:
                self._end_received()
            await self._gate.open.wait()

    def end(self) -> None:
        """End both directions locally, such as after a lost connection."""
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

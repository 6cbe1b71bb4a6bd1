"""One end of the socket. Messages of one event loop turn are sent as one frame, in one system call."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.remote.messages import HEAD, Message, frame, length_of, messages_of

_READ_AHEAD = 1 << 20
"""Send buffer size above which reading pauses."""


class Channel(asyncio.Protocol):
    """`received` gets every message in order; `lost` is called once at the end."""

    def __init__(self, received: Callable[[Message], None], lost: Callable[[], None]) -> None:
        self._received = received
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._outgoing: list[Message] = []
        self._writable = asyncio.Event()
        self._writable.set()

    @classmethod
    async def over(
        cls, sock: socket.socket, *, received: Callable[[Message], None], lost: Callable[[], None]
    ) -> Channel:
        """Open a channel, which takes ownership of the socket."""
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_connection(lambda: cls(received, lost), sock=sock)
        return channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_READ_AHEAD)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._writable.set()
        self._lost()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def send(self, message: Message) -> None:
        """Send a message. Raises Unavailable."""
        if self._transport is None:
            raise Unavailable("the store's process is gone")
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(message)

    async def drained(self) -> None:
        """Wait until the peer accepts more data or is gone."""
        await self._writable.wait()

    def close(self) -> None:
        """Flush, then close."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= HEAD:
            end = HEAD + length_of(self._buffer[:HEAD])
            if len(self._buffer) < end:
                return
            messages = messages_of(self._buffer[HEAD:end])
            del self._buffer[:end]
            for message in messages:
                self._received(message)

    def pause_writing(self) -> None:
        """Pause reading too: a peer that does not read must not cause further answers."""
        self._writable.clear()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._transport is not None:
            self._transport.resume_reading()

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if outgoing and self._transport is not None:
            self._transport.write(frame(outgoing))

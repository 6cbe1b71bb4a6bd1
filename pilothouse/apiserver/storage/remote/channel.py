"""One end of the socket. What is sent within one turn of the event loop goes out in one frame, by one system call."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.remote.messages import HEAD, Message, frame, length_of, messages_of

_READ_AHEAD = 1 << 20
"""Bytes that may wait to be sent before the other end is asked for nothing more."""


class Channel(asyncio.Protocol):
    """`received` gets every message, in order; `lost` is called once, when no more will come."""

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
        """The socket belongs to the channel from now on."""
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
        """Raises Unavailable."""
        if self._transport is None:
            raise Unavailable("the store's process is gone")
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(message)

    async def drained(self) -> None:
        """Returns when the other end takes more, or is gone."""
        await self._writable.wait()

    def close(self) -> None:
        """What was sent goes out first."""
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
        """Nothing more is read from an end that does not read, or its answers would pile up here."""
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

"""Client connections of any protocol: fair reading, back-pressure and write timeouts.

A read may return 256 KiB, while the smallest frame has nine bytes. A protocol therefore processes TURN_BYTES per turn
of the event loop, and other tasks run in between.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from pilothouse.apiserver.offload import TURN_BYTES
from pilothouse.apiserver.serving.client_certificate import UNREAD, KnownCertificate
from pilothouse.apiserver.serving.exchange import ClientGone, Exchange
from pilothouse.apiserver.serving.state import NEVER, ServingState
from pilothouse.machinery.platform import unsent_bytes

CHUNK: Final = 128 << 10
"""Write size of large bodies: TLS encrypts piecewise, and little data is queued."""

_BULK: Final = 4 * TURN_BYTES
"""Input above this size is processed beside that of few other connections at a time."""
_FAREWELL: Final = 0.1
"""Seconds between checks for unsent data of a closing connection."""
_LOOKS: Final = 2
_UNINFORMED_LOOKS: Final = 10
_HIGH_WATER: Final = 256 << 10
_LOW_WATER: Final = 64 << 10


class ClientConnection(asyncio.Protocol):
    """The base class of HTTP/1.1 and HTTP/2 connections."""

    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop) -> None:
        self.state = state
        self.loop = loop
        self.transport: asyncio.Transport
        self.client: tuple[str, int] | None = None
        self.scheme = "https"
        self.certificate: KnownCertificate = UNREAD
        self.write_paused = False
        self.write_deadline = NEVER  # for paused writes or closing
        self.lost = False
        self._writers: list[asyncio.Future[None]] = []
        self._reading = True  # the protocol accepts more data
        self._unread = b""  # input that is processed in turns; reading is paused meanwhile
        self._processed = 0  # bytes of it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's transports are not subclasses of asyncio's
        self.transport.set_write_buffer_limits(_HIGH_WATER, _LOW_WATER)
        peer = transport.get_extra_info("peername")
        self.client = (peer[0], peer[1]) if peer else None
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        self.state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.take_unread()
        self.state.forget(self)
        self._wake_writers()

    # Reading

    def data_received(self, data: bytes) -> None:
        if len(data) <= TURN_BYTES and not self._unread:
            self.receive(data)
            return
        begun = bool(self._unread)
        self._unread += data
        if not begun:
            self.transport.pause_reading()
            self._take_turn()

    def receive(self, data: bytes) -> None:
        """Process a piece of the input."""
        raise NotImplementedError

    def _take_turn(self) -> None:
        piece = self._unread[self._processed : self._processed + TURN_BYTES]
        self._processed += len(piece)
        if piece:
            self.receive(piece)
        if self.transport.is_closing():
            self.take_unread()
        elif self._processed < len(self._unread):
            if len(self._unread) > _BULK:
                self.state.bulk_turns.wait(self._take_turn)
            else:
                self.loop.call_soon(self._take_turn)
        else:
            self.take_unread()
            if self._reading:
                self.transport.resume_reading()

    def take_unread(self) -> bytes:
        """Return and clear the unprocessed input."""
        unread = self._unread[self._processed :]
        self._unread, self._processed = b"", 0
        return unread

    def pause(self) -> None:
        """Stop reading until read_on; input already read stays buffered."""
        if self._reading and not self.transport.is_closing():
            self._reading = False
            if not self._unread:
                self.transport.pause_reading()

    def read_on(self) -> None:
        if not self._reading and not self.transport.is_closing():
            self._reading = True
            if not self._unread:
                self.transport.resume_reading()

    # Writing

    def pause_writing(self) -> None:
        self.write_paused = True
        self.write_deadline = self.state.now + self.state.limits.write_timeout

    def resume_writing(self) -> None:
        self.write_paused = False
        if not self.transport.is_closing():
            self.write_deadline = NEVER
        self._wake_writers()

    async def drained(self) -> None:
        """Wait until the client has read enough. Raises ClientGone after a disconnect."""
        while self.write_paused and not self.lost:
            waiter = self.loop.create_future()
            self._writers.append(waiter)
            await waiter
        if self.lost:
            raise ClientGone("the client went away")

    def _wake_writers(self) -> None:
        writers, self._writers = self._writers, []
        for waiter in writers:
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Close after pending output is sent or timed out."""
        if not self.transport.is_closing():
            self.transport.close()
            self.write_deadline = self.state.now + self.state.limits.write_timeout
            self.loop.call_later(_FAREWELL, self._hang_up)

    def _hang_up(self, quiet_looks: int = 0) -> None:
        """Abort a closing connection after its output is sent. TLS would wait for the client's close_notify, which
        clients with idle pooled connections do not send.

        The event loop passes buffered output to the kernel as soon as there is room. Two consecutive checks without
        unsent kernel data therefore mean that no output is left. If the kernel cannot report unsent data, a second is
        allowed.
        """
        if self.lost:
            return
        try:
            unsent = unsent_bytes(self.transport.get_extra_info("socket"))
        except (AttributeError, OSError, ValueError):
            unsent = 1
        quiet_looks = 0 if unsent or self.transport.get_write_buffer_size() else quiet_looks + 1
        if quiet_looks >= (_UNINFORMED_LOOKS if unsent is None else _LOOKS):
            self.abort()
        else:
            self.loop.call_later(_FAREWELL, self._hang_up, quiet_looks)

    def abort(self) -> None:
        self.transport.abort()

    def sweep(self, now: float) -> None:
        if now > self.write_deadline:
            self.abort()

    def drain(self) -> None:
        raise NotImplementedError


class ConnectionExchange(Exchange):
    """An exchange on a client connection, with its back-pressure."""

    __slots__ = ("_connection",)

    _connection: ClientConnection

    @property
    def write_paused(self) -> bool:
        return self._connection.write_paused

    async def drained(self) -> None:
        await self._connection.drained()

"""A client's connection, whatever it speaks: it reads in turns, waits for slow readers and gives up on stuck ones.

One read may bring a quarter of a megabyte, and the smallest things that a client can say take nine bytes. So a protocol
gets TURN_BYTES of what came in one turn of the event loop, and everybody else has a turn before it gets the next.
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
"""Large bodies are written in pieces of this size: TLS encrypts a piece at a time, and little is queued."""

_FAREWELL: Final = 0.1
"""Seconds between two looks at whether a client whose connection closes has got everything."""
_LOOKS: Final = 2
_UNINFORMED_LOOKS: Final = 10
_HIGH_WATER: Final = 256 << 10
_LOW_WATER: Final = 64 << 10


class ClientConnection(asyncio.Protocol):
    """The base of HTTP/1.1 and HTTP/2 connections."""

    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop) -> None:
        self.state = state
        self.loop = loop
        self.transport: asyncio.Transport
        self.client: tuple[str, int] | None = None
        self.scheme = "https"
        self.certificate: KnownCertificate = UNREAD
        self.write_paused = False
        self.write_deadline = NEVER  # of the pause, or of the closing
        self.lost = False
        self._writers: list[asyncio.Future[None]] = []
        self._reading = True  # the protocol wants more
        self._unread = b""  # the rest of what was read; while there is some, nothing more is read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not of asyncio's class
        self.transport.set_write_buffer_limits(_HIGH_WATER, _LOW_WATER)
        peer = transport.get_extra_info("peername")
        self.client = (peer[0], peer[1]) if peer else None
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        self.state.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._unread = b""
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
        """Takes a piece of what the client said."""
        raise NotImplementedError

    def _take_turn(self) -> None:
        piece, self._unread = self._unread[:TURN_BYTES], self._unread[TURN_BYTES:]
        if piece:
            self.receive(piece)
        if self.transport.is_closing():
            self._unread = b""
        elif self._unread:
            self.loop.call_soon(self._take_turn)
        elif self._reading:
            self.transport.resume_reading()

    def take_unread(self) -> bytes:
        """The rest of what was read. No turn comes for it any more."""
        unread, self._unread = self._unread, b""
        return unread

    def pause(self) -> None:
        """Reads nothing until read_on, beyond what has been read."""
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
        """Returns when the client has read enough; raises ClientGone when it is gone."""
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
        """Closes when what is written has been sent, or the client did not read it in time."""
        if not self.transport.is_closing():
            self.transport.close()
            self.write_deadline = self.state.now + self.state.limits.write_timeout
            self.loop.call_later(_FAREWELL, self._hang_up)

    def _hang_up(self, quiet_looks: int = 0) -> None:
        """TLS waits for the client's goodbye, which one that only keeps a connection for later does not say.

        What the event loop holds back goes to the kernel as soon as there is room, so that at the second look in a row
        without anything unsent there, nothing is held back either. Where the kernel does not say what is unsent, it
        gets a second.
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
    """An exchange on a client's connection, which it waits for while the client does not read."""

    __slots__ = ("_connection",)

    _connection: ClientConnection

    @property
    def write_paused(self) -> bool:
        return self._connection.write_paused

    async def drained(self) -> None:
        await self._connection.drained()

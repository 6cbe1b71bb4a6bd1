"""An HTTP/1.1 client connection, for one request at a time.

Guarantees: buffers are bounded by back-pressure on the server. A connection is reused only after both messages of the
last exchange are complete.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Final, cast

from pilothouse.apiserver.head_fields import InvalidHead, check_request
from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http1.framing import BadMessage
from pilothouse.apiserver.http1.parser import END, UnsendableRequest, chosen_parsers
from pilothouse.apiserver.outbound.exchange import BackendExchange, Head
from pilothouse.apiserver.outbound.failures import BackendFailed, broken_connection

_HIGH_WATER: Final = 512 << 10
_LOW_WATER: Final = 256 << 10


class ReceiveBuffer(threading.local):
    """The receive buffer of all connections of an event loop, which fills and delivers it in a single step.

    Other threads have their own: TLS fills it without holding the interpreter.
    """

    def __init__(self) -> None:
        self.view = memoryview(bytearray(256 << 10))


INPUT: Final = ReceiveBuffer()


class BackendConnection(BackendExchange, asyncio.BufferedProtocol):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._parser = chosen_parsers().response()
        self._to_send = b""  # the head, held to be sent with the body
        self._reading = True
        self._drained = asyncio.Event()
        self._drained.set()
        self._sent = True
        self._used = False
        self.reused = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's transports are not subclasses of asyncio's

    @property
    def reusable(self) -> bool:
        return self._ended and self._sent and self._failure is None and not self.transport.is_closing()

    def close(self) -> None:
        self.transport.abort()

    def send_head(self, method: str, target: str, headers: Headers) -> None:
        try:
            check_request(method.encode(), target.encode("latin-1"), headers)
        except InvalidHead as error:
            raise BackendFailed(str(error)) from None
        self.reused = self._used
        self._used, self._head, self._ended, self._sent = True, None, False, False
        try:
            self._to_send = self._parser.request(method.encode(), target.encode("latin-1"), headers)
        except UnsendableRequest as error:
            raise BackendFailed(f"net/http: {error}") from None

    def send_end(self, body: bytes = b"") -> None:
        data = self._parser.data(body) if body else b""
        self._send(data + self._parser.end())
        self._sent = True

    def _send(self, data: bytes) -> None:
        head, self._to_send = self._to_send, b""
        self.transport.write(head + data)

    async def send_stream(self, body: AsyncIterator[bytes]) -> None:
        async for chunk in body:
            if self._ended or self._failure:
                return
            self._send(self._parser.data(chunk))
            await self._drained.wait()
        self.send_end()

    def get_buffer(self, sizehint: int) -> memoryview:
        return INPUT.view

    def buffer_updated(self, nbytes: int) -> None:
        if self._ended:
            self._fail("unsolicited response received on idle HTTP channel")
            return
        self._parse(bytes(INPUT.view[:nbytes]))
        if self._waiting_bytes > _HIGH_WATER and self._reading:
            self._reading = False
            self.transport.pause_reading()
        self._wake()

    def _parse(self, data: bytes) -> None:
        """Parse received data; empty data is the end of input."""
        try:
            for event in self._parser.receive(data):
                if isinstance(event, bytes):
                    self._put(event)
                elif event is END:
                    self._ended = True
                    if self._parser.should_close():
                        self.transport.close()
                elif not 100 <= event.status < 200:
                    self._head = Head(event.status, event.headers)
        except BadMessage as error:
            self._fail(f"net/http: HTTP/1.x transport connection broken: {error}")

    def _body_read(self, size: int) -> None:
        if not self._reading and self._waiting_bytes < _LOW_WATER and not self.transport.is_closing():
            self._reading = True
            self.transport.resume_reading()

    def eof_received(self) -> None:
        if not self._ended:
            self._parse(b"")
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended:
            self._fail(broken_connection(exc))
        self._drained.set()
        self._wake()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def _fail(self, why: str) -> None:
        self._break_off(why)
        self.transport.abort()

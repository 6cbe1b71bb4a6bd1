"""One HTTP/1.1 connection to another server, for one request at a time.

Guarantees: what waits to be passed on is bounded: the other server is held back while nobody reads. A connection is
good for another request only when both messages of the last one are complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, cast

import zttp

from pilothouse.apiserver.head_fields import InvalidHead, check_request
from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.outbound.exchange import BackendExchange, Head
from pilothouse.apiserver.outbound.failures import BackendFailed, broken_connection

_HIGH_WATER: Final = 512 << 10
_LOW_WATER: Final = 256 << 10
INPUT: Final = memoryview(bytearray(256 << 10))
"""Event loops fill it and say so in one step, so all connections can share it."""


class BackendConnection(BackendExchange, asyncio.BufferedProtocol):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._parser = zttp.Connection(zttp.CLIENT)
        self._reading = True
        self._drained = asyncio.Event()
        self._drained.set()
        self._sent = True
        self._used = False
        self.reused = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not of asyncio's class

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
        if self._used:
            self._parser.start_next_cycle()
        self._used, self._head, self._ended, self._sent = True, None, False, False
        try:
            self._parser.send_request(method.encode(), target.encode("latin-1"), b"1.1", headers)
        except zttp.LocalProtocolError as error:
            raise BackendFailed(f"net/http: {error}") from None

    def send_end(self, body: bytes = b"") -> None:
        if body:
            self._parser.send_data(body)
        self._parser.end_message()
        self._sent = True
        self.transport.write(self._parser.data_to_send())

    async def send_stream(self, body: AsyncIterator[bytes]) -> None:
        async for chunk in body:
            if self._ended or self._failure:
                return
            self._parser.send_data(chunk)
            self.transport.write(self._parser.data_to_send())
            await self._drained.wait()
        self.send_end()

    def get_buffer(self, sizehint: int) -> memoryview:
        return INPUT

    def buffer_updated(self, nbytes: int) -> None:
        if self._ended:
            self._fail("unsolicited response received on idle HTTP channel")
            return
        self._parse(bytes(INPUT[:nbytes]))
        if self._waiting_bytes > _HIGH_WATER and self._reading:
            self._reading = False
            self.transport.pause_reading()
        self._wake()

    def _parse(self, data: bytes) -> None:
        """An empty `data` is the end of what comes."""
        try:
            event: zttp.Event = self._parser.receive_event(data)
            while event is not zttp.NEED_DATA and event is not zttp.CONNECTION_CLOSED:
                self._on_event(event)
                event = self._parser.next_event()
        except zttp.RemoteProtocolError as error:
            self._fail(f"net/http: HTTP/1.x transport connection broken: {error}")

    def _on_event(self, event: zttp.Event) -> None:
        if isinstance(event, zttp.Data):
            self._put(event.data)
        elif isinstance(event, zttp.EndOfMessage):
            self._ended = True
            if self._parser.should_close():
                self.transport.close()
        elif isinstance(event, zttp.Response) and not 100 <= event.status_code < 200:
            headers = cast("zttp.HeaderBlock", event.headers).to_list(lowercase_names=True)
            self._head = Head(event.status_code, headers)

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

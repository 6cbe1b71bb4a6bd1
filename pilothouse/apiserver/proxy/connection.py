"""One HTTP/1.1 connection to another server, for one request at a time.

Guarantees: an answer is passed on as it comes, and what waits to be passed on is bounded: the other server is held back
while nobody reads. A connection is good for another request only when both messages of the last one are complete.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, cast

import zttp

from pilothouse.apiserver.http import Headers, StreamBroken
from pilothouse.machinery.dataclass import dataclass

_HIGH_WATER: Final = 512 << 10
_LOW_WATER: Final = 128 << 10
_JOINED: Final = 32 << 10


class BackendFailed(StreamBroken):
    """The other server went away, or spoke no HTTP. `unanswered`: before it had said anything."""

    def __init__(self, why: str, *, unanswered: bool = False) -> None:
        super().__init__(why)
        self.unanswered = unanswered


@dataclass(frozen=True, slots=True)
class Head:
    status: int
    headers: Headers


class BackendConnection(asyncio.Protocol):
    _chunks: deque[bytes]  # what has come of the body and was not read yet
    _head: Head | None
    _waiter: asyncio.Future[None] | None  # of whoever waits for a head, a chunk or the end

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parser = zttp.Connection(zttp.CLIENT)
        self._chunks = deque()
        self._waiting_bytes = 0
        self._head = None
        self._ended = True
        self._failure: BackendFailed | None = None
        self._waiter = None
        self._reading = True
        self._drained = asyncio.Event()
        self._drained.set()
        self._sent = True
        self._used = False
        self._timer: asyncio.TimerHandle | None = None
        self.reused = False  # the request is not the first on this connection
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not of asyncio's class

    @property
    def reusable(self) -> bool:
        return self._ended and self._sent and self._failure is None and not self.transport.is_closing()

    def close(self) -> None:
        self.transport.abort()

    def send_head(self, method: str, target: str, headers: Headers) -> None:
        """Begins a request. Raises BackendFailed for what can not be sent."""
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
        """Sends a body as it comes, no faster than it is taken. Stops when the answer is there before its end."""
        async for chunk in body:
            if self._ended or self._failure:
                return
            self._parser.send_data(chunk)
            self.transport.write(self._parser.data_to_send())
            await self._drained.wait()
        self.send_end()

    async def head(self) -> Head:
        """Raises BackendFailed."""
        while self._head is None:
            if self._failure is not None:
                raise self._failure
            await self._more()
        return self._head

    def fail_at(self, deadline: float) -> None:
        """Breaks the answer off if it has not ended by then, in the time of the event loop."""
        self._timer = self._loop.call_at(deadline, self._fail, "context deadline exceeded")

    @property
    def whole_body(self) -> bytes | None:
        """The body, if all of it is here."""
        return b"".join(self._chunks) if self._ended and self._failure is None else None

    async def body(self) -> AsyncIterator[bytes]:
        """What comes, as it comes. Raises BackendFailed when the answer breaks off."""
        while True:
            if self._chunks:
                chunk = self._next_chunk()
                self._waiting_bytes -= len(chunk)
                self._read_on()
                yield chunk
            elif self._ended:
                return
            elif self._failure is not None:
                raise self._failure
            else:
                await self._more()

    def _next_chunk(self) -> bytes:
        """Small ones are joined, for each costs a write; joining large ones would cost more than it saves."""
        if len(self._chunks) == 1 or self._waiting_bytes > _JOINED:
            return self._chunks.popleft()
        joined = b"".join(self._chunks)
        self._chunks.clear()
        return joined

    def forget(self) -> None:
        """The request is done with."""
        self._chunks.clear()
        self._waiting_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _more(self) -> None:
        self._waiter = self._loop.create_future()
        await self._waiter

    def data_received(self, data: bytes) -> None:
        if self._ended:
            self._fail("unsolicited response received on idle HTTP channel")
            return
        self._parse(data)
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
            self._chunks.append(event.data)
            self._waiting_bytes += len(event.data)
        elif isinstance(event, zttp.EndOfMessage):
            self._ended = True
            if self._parser.should_close():
                self.transport.close()
        elif isinstance(event, zttp.Response) and not 100 <= event.status_code < 200:
            headers = cast("zttp.HeaderBlock", event.headers).to_list(lowercase_names=True)
            self._head = Head(event.status_code, headers)

    def _read_on(self) -> None:
        if not self._reading and self._waiting_bytes < _LOW_WATER and not self.transport.is_closing():
            self._reading = True
            self.transport.resume_reading()

    def eof_received(self) -> None:
        if not self._ended:
            self._parse(b"")
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended:
            self._fail(_reason(exc))
        self._drained.set()
        self._wake()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def _fail(self, why: str) -> None:
        if self._failure is None:
            self._failure = BackendFailed(why, unanswered=self._head is None)
        self.transport.abort()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _reason(error: Exception | None) -> str:
    if isinstance(error, ConnectionResetError):
        return "read: connection reset by peer"
    return str(error) if error and str(error) else "EOF"

"""One request to another server and its answer, whatever the protocol.

Guarantees: an answer is passed on as it comes; what has come and was not read waits in order, and whoever brings it is
told what was read, so that it can hold the other server back; an answer that breaks off raises BackendFailed.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.outbound.failures import DEADLINE_EXCEEDED, BackendFailed
from pilothouse.machinery.dataclass import dataclass

_JOINED: Final = 32 << 10


@dataclass(frozen=True, slots=True)
class Head:
    status: int
    headers: Headers


class BackendExchange(ABC):
    reused: bool  # the request is not the first on its connection
    _chunks: deque[bytes]  # what has come of the body and was not read yet
    _head: Head | None
    _waiter: asyncio.Future[None] | None  # of whoever waits for a head, a chunk or the end

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._chunks = deque()
        self._waiting_bytes = 0
        self._head = None
        self._ended = True
        self._failure: BackendFailed | None = None
        self._waiter = None
        self._timer: asyncio.TimerHandle | None = None

    @abstractmethod
    def send_head(self, method: str, target: str, headers: Headers) -> None:
        """Begins a request. Raises BackendFailed for what can not be sent."""

    @abstractmethod
    def send_end(self, body: bytes = b"") -> None:
        """Sends the whole body, or its end."""

    @abstractmethod
    async def send_stream(self, body: AsyncIterator[bytes]) -> None:
        """Sends a body as it comes, no faster than it is taken. Stops when the answer is there before its end."""

    @abstractmethod
    def close(self) -> None:
        """Give up the rest of the answer."""

    @abstractmethod
    def _body_read(self, size: int) -> None:
        """So many of the bytes that waited were read."""

    async def head(self) -> Head:
        """Raises BackendFailed."""
        while self._head is None:
            if self._failure is not None:
                raise self._failure
            await self._wait()
        return self._head

    def fail_at(self, deadline: float) -> None:
        """Breaks the answer off if it has not ended by then, in the time of the event loop."""
        self._timer = self._loop.call_at(deadline, self._out_of_time)

    def _out_of_time(self) -> None:
        self._break_off(DEADLINE_EXCEEDED)
        self.close()

    @property
    def whole_body(self) -> bytes | None:
        """The body, if all of it is here."""
        if not self._ended or self._failure is not None:
            return None
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes. Raises BackendFailed when the answer breaks off."""
        while True:
            if self._chunks:
                chunk = self._next_chunk()
                self._waiting_bytes -= len(chunk)
                self._body_read(len(chunk))
                yield chunk
            elif self._ended:
                return
            elif self._failure is not None:
                raise self._failure
            else:
                await self._wait()

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

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        await self._waiter

    def _put(self, data: bytes) -> None:
        self._chunks.append(data)
        self._waiting_bytes += len(data)

    def _break_off(self, why: str, *, unprocessed: bool = False) -> None:
        """End the answer with a failure; what has come before can still be read."""
        if self._failure is None:
            self._failure = BackendFailed(why, unanswered=self._head is None, unprocessed=unprocessed)
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

"""A request and its response, independent of the protocol.

Guarantees: responses are streamed. Unread data is queued in order, and the connection is notified of reads, for back-
pressure. A truncated response raises BackendFailed.
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
    reused: bool  # whether the connection served an earlier request
    _chunks: deque[bytes]  # received, unread chunks of the body
    _head: Head | None
    _waiter: asyncio.Future[None] | None  # of the reader waiting for a head, a chunk or the end

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
        """Start a request. Raises BackendFailed for an invalid request."""

    @abstractmethod
    def send_end(self, body: bytes = b"") -> None:
        """Send the whole body, or its end."""

    @abstractmethod
    async def send_stream(self, body: AsyncIterator[bytes]) -> None:
        """Stream a body with back-pressure. Stops if the response completes early."""

    @abstractmethod
    def close(self) -> None:
        """Abandon the rest of the response."""

    @abstractmethod
    def _body_read(self, size: int) -> None:
        """Account for `size` bytes read."""

    async def head(self) -> Head:
        """Wait for the response head. Raises BackendFailed."""
        while self._head is None:
            if self._failure is not None:
                raise self._failure
            await self._wait()
        return self._head

    def fail_at(self, deadline: float) -> None:
        """Fail the response unless complete by `deadline` (event loop time)."""
        self._timer = self._loop.call_at(deadline, self._out_of_time)

    def _out_of_time(self) -> None:
        self._break_off(DEADLINE_EXCEEDED)
        self.close()

    @property
    def whole_body(self) -> bytes | None:
        """Return the body if complete, else None."""
        if not self._ended or self._failure is not None:
            return None
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    async def body(self) -> AsyncIterator[bytes]:
        """Yield chunks of the body. Raises BackendFailed if the response is truncated."""
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
        """Return the next chunk. Small chunks are joined to save writes; joining large chunks would cost more."""
        if len(self._chunks) == 1 or self._waiting_bytes > _JOINED:
            return self._chunks.popleft()
        joined = b"".join(self._chunks)
        self._chunks.clear()
        return joined

    def forget(self) -> None:
        """Release the buffers and the timer."""
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
        """Fail the response; chunks received before stay readable."""
        if self._failure is None:
            self._failure = BackendFailed(why, unanswered=self._head is None, unprocessed=unprocessed)
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

"""One request and its answer, whatever the protocol.

Guarantees: a stream is closed (`aclose`) when it ends, fails, or its client goes away — also while it is idle;
a handler that works on an answer is never interrupted by its client's going; what is read of a body is bounded by the
limit that the reader gives; a write waits while the client does not read, and fails with ClientGone when it is gone;
no cycle of references holds an exchange that is over, so that all that belonged to it is freed at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from pilothouse.apiserver.http import Handler, Headers, Request, Response, Stream, StreamBroken
from pilothouse.apiserver.streams import close_stream
from pilothouse.machinery.errors import RequestEntityTooLarge

log = logging.getLogger(__name__)

AHEAD = 256 << 10
"""Bytes of a streamed body that a client may send before they are read."""
_PIECES = 64
"""In which a body is kept until it is read."""
NO_BODY_STATUS = frozenset({204, 304})


class ClientGone(ConnectionError):
    """The client went away, or did not read for too long."""


class Exchange(ABC):
    __slots__ = (
        "_body",
        "_body_waiter",
        "_left",
        "body_size",
        "ended",
        "gone",
        "request",
        "started",
        "streaming",
        "task",
    )

    task: asyncio.Task[None]
    request: Request

    def __init__(self) -> None:
        self.gone = False  # the client will read nothing more
        self.started = False  # the head of the answer is written
        self.streaming = False  # a stream is being answered: the task may be cancelled
        self.ended = True  # the request's body is all here
        self.body_size = 0
        self._body: list[bytes | bytearray] = []
        self._body_waiter: asyncio.Future[None] | None = None
        self._left: asyncio.Future[None] | None = None

    @property
    def write_paused(self) -> bool:
        """Whether more was written to the client than it has read, so that an answer should wait for `drained`."""
        return False

    async def drained(self) -> None:
        """Returns when the client has read enough of what was written to it before. Raises ClientGone."""
        return

    @abstractmethod
    def send_whole(self, response: Response, body: bytes) -> memoryview | None:
        """Writes head and body. Returns what of the body must wait until the client has read some of it."""

    @abstractmethod
    async def send_rest(self, rest: memoryview) -> None:
        """Writes what send_whole left over."""

    @abstractmethod
    async def start(self, status: int, headers: Headers) -> None:
        """Writes the head of a stream, at once."""

    @abstractmethod
    async def write(self, chunk: bytes) -> None:
        """Writes a part of a stream, at once; waits while the client is slow."""

    @abstractmethod
    async def finish(self) -> None:
        """Ends a stream."""

    @abstractmethod
    def abort(self) -> None:
        """Ends an answer so that the client sees that it is not whole."""

    @abstractmethod
    def want_body(self, limit: int) -> None:
        """Lets the client send up to `limit` bytes of body."""

    @abstractmethod
    def want_more(self, size: int) -> None:
        """Lets the client send about `size` bytes beyond what was read."""

    @abstractmethod
    def done(self) -> None:
        """The answer is written, or never will be."""

    async def upgrade(self, response: Response) -> None:
        """Hands the connection over; only HTTP/1.1 can."""
        raise RuntimeError("this protocol cannot be upgraded")

    async def run(self, handler: Handler) -> None:
        try:
            if not self.gone:  # a stream may be reset before its turn
                await self._answer(await handler(self.request))
        except (ClientGone, StreamBroken):
            self.abort()
        except asyncio.CancelledError:
            self.abort()
            if not self.gone:
                raise
        except Exception:
            log.exception("The request failed: %s %s", self.request.method, self.request.path)
            await self._fail()
        finally:
            self.done()
            # The request knows how to read its body, and so the exchange: without this they would keep each other.
            del self.request

    async def _answer(self, response: Response) -> None:
        body = response.body
        if self.write_paused:
            await self.drained()
        if response.upgrade is not None:
            await self.upgrade(response)
        elif isinstance(body, bytes):
            rest = self.send_whole(response, body)
            if rest is not None:
                await self.send_rest(rest)
        else:
            await self._stream(response, body)

    async def _stream(self, response: Response, body: Stream) -> None:
        try:
            if self.gone:
                return
            self.streaming = True
            await self.start(response.status, response.headers)
            if self.request.method != "HEAD" and response.status not in NO_BODY_STATUS:
                async for chunk in body:
                    if chunk:
                        await self.write(chunk)
                    del chunk  # a watch may be idle for long
            await self.finish()
        finally:
            self.streaming = False
            await close_stream(body)

    async def _fail(self) -> None:
        if self.started or self.gone:
            self.abort()
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        with contextlib.suppress(ClientGone):
            await self._answer(Response(500, b"Internal Server Error\n", headers))

    async def read_body(self, limit: int) -> bytes:
        """The whole body. Raises RequestEntityTooLarge without reading on when it is longer than the limit."""
        declared = self.request.header(b"content-length")
        if declared.isdecimal() and int(declared) > limit:
            raise RequestEntityTooLarge.of(f"limit is {limit}")
        if not self.ended:
            self.want_body(limit)
        while not self.ended:
            if self.gone:
                raise ClientGone("the client went away before its request was complete")
            await self._more_body()
            if self.body_size > limit:
                break
        if self.body_size > limit:
            raise RequestEntityTooLarge.of(f"limit is {limit}")
        whole = b"".join(self._body)
        self._body = [whole]
        return whole

    async def stream_body(self) -> AsyncIterator[bytes]:
        """The body as it comes; the client may be a little ahead of the reader. Raises ClientGone."""
        if not self.ended:
            self.want_body(AHEAD)
        while self._body or not self.ended:
            if self._body:
                chunks, self._body = self._body, []
                yield b"".join(chunks)
            elif self.gone:
                raise ClientGone("the client went away before its request was complete")
            else:
                self.want_more(AHEAD)
                await self._more_body()

    async def _more_body(self) -> None:
        self._body_waiter = asyncio.get_running_loop().create_future()
        await self._body_waiter

    def receive(self, data: bytes) -> None:
        body = self._body
        if len(body) < _PIECES:
            body.append(data)
        else:
            self._append_to_last(data)
        self.body_size += len(data)
        self._wake()

    def _append_to_last(self, data: bytes) -> None:
        """A body that comes a byte at a time takes no more memory than another."""
        last = self._body[-1]
        if not isinstance(last, bytearray):
            last = self._body[-1] = bytearray(last)
        last += data

    def receive_end(self) -> None:
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        waiter, self._body_waiter = self._body_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def disconnected(self) -> None:
        if self.gone:
            return
        if self._left is None:
            self._left = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._left)

    def leave(self) -> None:
        """The client is gone: whoever waits for it is told."""
        if self.gone:
            return
        self.gone = True
        self._wake()
        if self._left is not None and not self._left.done():
            self._left.set_result(None)
        request = getattr(self, "request", None)  # the request of an exchange that has ended is gone
        if self.streaming or (request is not None and request.is_offloaded):
            self.task.cancel()

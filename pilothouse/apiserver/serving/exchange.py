"""A request and its response, independent of the protocol.

Guarantees: a stream is closed (`aclose`) when it ends, fails, or the client disconnects, even while idle. A disconnect
never interrupts a handler before its response. Body reads are bounded by the reader's limit. Writes wait for slow
clients, and raise ClientGone after a disconnect. Finished exchanges have no reference cycles, so their memory is freed
immediately.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from pilothouse.apiserver.http import Handler, Headers, Request, Response, Stream, StreamBroken
from pilothouse.apiserver.streams import close_stream, push_to
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import RequestEntityTooLarge
from pilothouse.machinery.percent import BadEscape, unescape

_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/]*").match


class BadTarget(ValueError):
    """The target is not a path, or has invalid escapes."""


@dataclass(frozen=True, slots=True)
class RequestTarget:
    path: str
    query_string: str


# Clients repeat requests.
@bounded_cache(entries=4096, key_bytes=512)
def parse_target(target: bytes) -> RequestTarget:
    """Decode the path like Go's net/url, and leave the query unparsed."""
    path, _, query = target.partition(b"?")
    if not path.startswith(b"/"):
        path = _origin_form(path)
    if b"%" in path:
        try:
            path = unescape(path)
        except BadEscape as error:
            raise BadTarget(str(error)) from None
    return RequestTarget(path.decode("utf-8", "replace"), query.decode("latin-1"))


def _origin_form(path: bytes) -> bytes:
    """Return the path of an absolute-form target, as sent by proxies. `*` denotes the whole server."""
    if path == b"*":
        return path
    start = _ABSOLUTE(path)
    if start is None:
        raise BadTarget("invalid URI for request")
    return path[start.end() :] or b"/"


log = logging.getLogger(__name__)

AHEAD = 256 << 10
"""Maximum unread bytes of a streamed body."""
_PIECES = 64
"""Maximum number of buffered pieces of a body."""
NO_BODY_STATUS = frozenset({204, 304})


class ClientGone(ConnectionError):
    """The client disconnected, or did not read for too long."""


class Exchange(ABC):
    __slots__ = (
        "_body",
        "_body_waiter",
        "_left",
        "_wakes_above",
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
        self.gone = False  # client disconnected
        self.started = False  # response head written
        self.streaming = False  # streaming a response: the task may be cancelled
        self.ended = True  # request body complete
        self.body_size = 0
        self._body: list[bytes | bytearray] = []
        self._body_waiter: asyncio.Future[None] | None = None
        self._wakes_above = 0
        self._left: asyncio.Future[None] | None = None

    @property
    def write_paused(self) -> bool:
        """Return whether the client lags behind, and responses should wait for `drained`."""
        return False

    async def drained(self) -> None:
        """Wait until the client has read enough. Raises ClientGone."""
        return

    @abstractmethod
    def send_whole(self, response: Response, body: bytes) -> memoryview | None:
        """Write head and body. Returns the rest of the body if the client must read first."""

    @abstractmethod
    async def send_rest(self, rest: memoryview) -> None:
        """Write the rest left by send_whole."""

    @abstractmethod
    async def start(self, status: int, headers: Headers) -> None:
        """Write the head of a stream immediately."""

    @abstractmethod
    async def write(self, chunk: bytes) -> None:
        """Write a chunk of a stream immediately, and wait for slow clients."""

    def write_now(self, chunk: bytes) -> bool:
        """Write a chunk of a stream, and return True. Returns False, and writes nothing, if `write` might have to
        wait."""
        return False

    @abstractmethod
    async def finish(self) -> None:
        """End a stream."""

    @abstractmethod
    def abort(self) -> None:
        """End a response such that the client detects the truncation."""

    @abstractmethod
    def want_body(self, limit: int) -> None:
        """Permit the client to send up to `limit` bytes of body."""

    @abstractmethod
    def want_more(self, size: int) -> None:
        """Permit the client to send about `size` further bytes."""

    @abstractmethod
    def done(self) -> None:
        """Finish the exchange; the response is written or abandoned."""

    async def upgrade(self, response: Response) -> None:
        """Hand over the connection; HTTP/1.1 only."""
        raise RuntimeError("this protocol cannot be upgraded")

    async def run(self, handler: Handler) -> None:
        try:
            if not self.gone:  # a stream may be reset before its task runs
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
            # Break the reference cycle: the request refers to the exchange for its body.
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
                push_to(body, self.write_now)
                async for chunk in body:
                    if chunk:
                        await self.write(chunk)
                    del chunk  # release the memory: a watch may be idle for long
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
        """Return the whole body. Raises RequestEntityTooLarge beyond the limit, without reading on."""
        declared = self.request.header(b"content-length")
        if declared.isdecimal() and int(declared) > limit:
            raise RequestEntityTooLarge.of(f"limit is {limit}")
        if not self.ended:
            self.want_body(limit)
        while not self.ended:
            if self.gone:
                raise ClientGone("the client went away before its request was complete")
            await self._more_body(above=limit)
            if self.body_size > limit:
                break
        if self.body_size > limit:
            raise RequestEntityTooLarge.of(f"limit is {limit}")
        whole = b"".join(self._body)
        self._body = [whole]
        return whole

    async def stream_body(self) -> AsyncIterator[bytes]:
        """Yield chunks of the body; the read-ahead is bounded. Raises ClientGone."""
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

    async def _more_body(self, above: int = 0) -> None:
        """Wait until the body has ended or is larger than `above`, or the client has gone."""
        self._wakes_above = above
        self._body_waiter = asyncio.get_running_loop().create_future()
        await self._body_waiter

    def receive(self, data: bytes) -> None:
        body = self._body
        if len(body) < _PIECES:
            body.append(data)
        else:
            # Tiny chunks join the last piece and need no additional memory.
            last = body[-1]
            if not isinstance(last, bytearray):
                last = body[-1] = bytearray(last)
            last += data
        self.body_size += len(data)
        if self.body_size > self._wakes_above:
            self._wake()

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
        """Handle a disconnect, and wake all waiters."""
        if self.gone:
            return
        self.gone = True
        self._wake()
        if self._left is not None and not self._left.done():
            self._left.set_result(None)
        request = getattr(self, "request", None)  # deleted after the end of the exchange
        if self.streaming or (request is not None and request.is_offloaded):
            self.task.cancel()

"""HTTP/2 server connections.

Guarantees, beyond those of the dispatcher: reset requests count against the limit until their handlers return, so
resets do not increase concurrency. Slow clients lose their stream, idle clients their connection.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.apiserver.http import Headers, Request
from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.control import connection_error
from pilothouse.apiserver.http2.dispatcher import FrameDispatcher
from pilothouse.apiserver.http2.frames import (
    CONNECTION_FIELDS,
    ConnectionFailure,
    ErrorCode,
    Field,
    Setting,
    StreamFailure,
    check_complete,
    content_length,
    malformed,
)
from pilothouse.apiserver.http2.hpack import TABLE_SIZE, encode_response
from pilothouse.apiserver.http2.reader import FrameReader
from pilothouse.apiserver.serving.exchange import BadTarget, parse_target
from pilothouse.apiserver.serving.http2_stream import Http2Stream
from pilothouse.apiserver.serving.state import NEVER, ServingState
from pilothouse.apiserver.serving.transport import ClientConnection
from pilothouse.machinery.dataclass import dataclass

_PSEUDO: Final = frozenset({b":method", b":scheme", b":path", b":authority"})


@dataclass(frozen=True, slots=True)
class RequestFields:
    method: bytes
    target: bytes
    headers: Headers
    content_length: int | None


def request_fields(fields: list[Field]) -> RequestFields:
    """Return the request line and headers; `host` comes first, taken from :authority if present.

    Raises StreamFailure.
    """
    pseudo: dict[bytes, bytes] = {}
    headers: Headers = []
    length: int | None = None
    for field in fields:
        name = field[0]
        if name[0] == 58:  # a colon
            if headers or name in pseudo or name not in _PSEUDO:
                raise malformed("a pseudo-header is out of place")
            pseudo[name] = field[1]
        else:
            if name in CONNECTION_FIELDS or (name == b"te" and field[1] != b"trailers"):
                raise malformed("a header speaks of the connection")
            if name == b"content-length":
                length = content_length(field[1], length)
            headers.append(field)
    method, target = pseudo.get(b":method"), pseudo.get(b":path")
    if not method or not target or b":scheme" not in pseudo:
        raise malformed("a pseudo-header is missing")
    if authority := pseudo.get(b":authority"):
        headers = [(b"host", authority), *(field for field in headers if field[0] != b"host")]
    return RequestFields(method, target, headers, length)


_RECEIVE_WINDOW: Final = 1 << 20
_TOGETHER: Final = 64 << 10


class Http2Connection(FrameDispatcher[Http2Stream], ClientConnection):
    peer = "client"

    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop) -> None:
        ClientConnection.__init__(self, state, loop)
        FrameDispatcher.__init__(
            self,
            FrameReader(),
            header_bytes=state.limits.header_bytes,
            header_timeout=state.limits.header_timeout,
            receive_window=_RECEIVE_WINDOW,
        )
        self.deadline = NEVER  # for the preface, or the next request
        self.running: set[Http2Stream] = set()  # streams with running handlers, including reset streams
        self._out: list[bytes] = []  # output of this turn of the event loop
        self._out_size = 0
        self._parting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        limits = self.state.limits
        self.deadline = self.state.now + limits.header_timeout
        announced = {
            Setting.MAX_CONCURRENT_STREAMS: limits.http2_streams,
            Setting.MAX_HEADER_LIST_SIZE: limits.header_bytes,
            Setting.HEADER_TABLE_SIZE: TABLE_SIZE,
        }
        grown = frames.window_update(0, _RECEIVE_WINDOW - frames.DEFAULT_WINDOW)
        self.transport.write(frames.settings(announced) + grown)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.over = True
        if self._parting is not None:
            self._parting.cancel()
        for stream in (*self.streams.values(), *self.running):
            stream.leave()
        self.streams.clear()

    def now(self) -> float:
        return self.state.now

    # Writing

    def write(self, data: bytes) -> None:
        """Buffer output until the end of this turn of the event loop; large output is flushed immediately."""
        if not self._out:
            self.loop.call_soon(self._flush)
        self._out.append(data)
        self._out_size += len(data)
        if self._out_size > _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        if self._out:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            self._out_size = 0
            if not self.transport.is_closing():
                self.transport.write(data)

    # Requests

    def on_head(self, stream_id: int, fields: list[Field] | None, *, end_stream: bool) -> None:
        if not stream_id & 1:
            raise connection_error("a client's stream has an even number")
        if self.leaving:
            self.spend()
            return
        self.highest = stream_id
        limit = self.state.limits.http2_streams
        if len(self.streams) >= limit or len(self.running) >= 2 * limit:
            raise StreamFailure(ErrorCode.REFUSED_STREAM, "too many streams")
        if fields is None:
            self.spend()
            self._refuse(stream_id, 431, end_stream=end_stream)
        else:
            self._open(stream_id, fields, end_stream=end_stream)

    def _open(self, stream_id: int, fields: list[Field], *, end_stream: bool) -> None:
        head = request_fields(fields)
        if end_stream:
            check_complete(head.content_length)
        try:
            target = parse_target(head.target)
        except BadTarget:
            self._refuse(stream_id, 400, end_stream=end_stream)
            return
        stream = Http2Stream(self, stream_id, self.initial_window)
        stream.request = Request(
            head.method.decode("latin-1"),
            target.path,
            target.query_string,
            head.headers,
            stream.read_body,
            self.scheme,
            "2",
            self.client,
            self.transport,
            stream.disconnected,
            stream.stream_body,
        )
        if not end_stream:
            stream.ended = False
            stream.expected = head.content_length
            stream.body_deadline = self.state.now + self.state.limits.body_timeout
        self.opened(stream)
        self.running.add(stream)
        self.deadline = NEVER
        stream.task = self.loop.create_task(stream.run(self.state.handler))

    def _refuse(self, stream_id: int, status: int, *, end_stream: bool) -> None:
        block = encode_response(status, [self.state.date_header, (b"content-length", b"0")])
        self.write(frames.header_frames(stream_id, block, end_stream=True, frame_size=self.frame_size))
        if not end_stream:
            self._stop_body(stream_id)

    def _stop_body(self, stream_id: int) -> None:
        """Ask the client to send no more of the body, in a separate write: curl drops a response that it reads together
        with the reset."""
        self._flush()
        self.write(frames.rst_stream(stream_id, ErrorCode.NO_ERROR))

    def answered(self, stream: Http2Stream) -> None:
        self.running.discard(stream)
        if stream.last:
            self.go_away()
        if self.streams.pop(stream.id, None) is not None:
            if not stream.ended and not stream.gone:
                self._stop_body(stream.id)
            self.settle()

    # Ending

    def settle(self) -> None:
        """Without open streams, mark the connection idle or close it."""
        if self.streams:
            return
        if self.leaving:
            # Closing with unread input would reset the connection, and the client might miss the GOAWAY.
            if self._parting is None:
                self._parting = self.loop.call_later(self.state.limits.linger, self.close)
        else:
            self.deadline = self.state.now + self.state.limits.idle_timeout

    def peer_leaves(self, last: int) -> None:
        """Handle the client's GOAWAY: no more requests follow, so an idle connection closes immediately."""
        if not self.streams:
            self.close()

    def go_away(self) -> None:
        """Send GOAWAY, so that the client opens a new connection for further requests."""
        if not self.leaving:
            self.leaving = True
            self.write(frames.goaway(self.highest, ErrorCode.NO_ERROR))

    def drain(self) -> None:
        self.go_away()
        self.settle()

    def fail(self, failure: ConnectionFailure) -> None:
        self.leaving = True
        self.write(frames.goaway(self.highest, failure.code, str(failure).encode()))
        for stream in (*self.streams.values(), *self.running):
            stream.leave()
        self.close()

    def close(self) -> None:
        self.over = True
        self._flush()
        super().close()

    def sweep(self, now: float) -> None:
        super().sweep(now)
        for stream in tuple(self.streams.values()):
            if now > stream.deadline or (not stream.ended and now > stream.body_deadline):
                self.fail_stream(stream.id, StreamFailure(ErrorCode.CANCEL, "the client is too slow"))
        if now > self.deadline and not self.lost:
            self.drain() if self.settled else self.abort()
        if self.is_late(now):
            self.abort()

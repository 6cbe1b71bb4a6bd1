"""An HTTP/2 server stream: request and response within the flow-control windows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pilothouse.apiserver.http import Headers, Response
from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.frames import StreamFailure
from pilothouse.apiserver.http2.hpack import encode_response
from pilothouse.apiserver.serving.exchange import NO_BODY_STATUS, ClientGone
from pilothouse.apiserver.serving.state import NEVER
from pilothouse.apiserver.serving.transport import CHUNK, ConnectionExchange

if TYPE_CHECKING:
    from pilothouse.apiserver.serving.http2_connection import Http2Connection

_OWN_FIELDS: Final = frozenset({b"content-length", b"connection", b"date"})


class Http2Stream(ConnectionExchange):
    __slots__ = (
        "_credit",
        "body_deadline",
        "closed",
        "deadline",
        "expected",
        "id",
        "last",
        "receive_window",
        "send_window",
    )

    _connection: Http2Connection

    def __init__(self, connection: Http2Connection, stream_id: int, send_window: int) -> None:
        super().__init__()
        self.id = stream_id
        self.closed = False  # END_STREAM or RST_STREAM sent
        self.last = False  # the response asks for a new connection
        self.send_window = send_window
        self.receive_window = frames.DEFAULT_WINDOW
        self.expected: int | None = None  # remaining declared length of the body
        self.body_deadline = NEVER
        self.deadline = NEVER  # for pending credit
        self._connection = connection
        self._credit: asyncio.Future[None] | None = None

    headed = True  # the head of a request creates the stream

    def send_whole(self, response: Response, body: bytes) -> memoryview | None:
        if self.gone:
            return None
        connection, size = self._connection, len(body)
        if self.request.method == "HEAD" or response.status in NO_BODY_STATUS:
            self._send_head(response.status, self._bodiless(response, size), end=True)
            return None
        headers = self._headers(response.headers)
        headers.append((b"content-length", b"%d" % size))
        if not size:
            self._send_head(response.status, headers, end=True)
        elif size <= min(self.send_window, connection.send_window, connection.frame_size, CHUNK):
            self._send_at_once(response.status, headers, body)
        else:
            self._send_head(response.status, headers)
            return memoryview(body)
        return None

    def _send_at_once(self, status: int, headers: Headers, body: bytes) -> None:
        """Send head and body in a single write, the common case."""
        connection, size = self._connection, len(body)
        block = encode_response(status, headers)
        self.started = self.closed = True
        self.send_window -= size
        connection.sent(size)
        head = frames.header_frames(self.id, block, end_stream=False, frame_size=connection.frame_size)
        connection.write(head + frames.frame_header(frames.DATA, frames.END_STREAM, self.id, size) + body)

    async def send_rest(self, rest: memoryview) -> None:
        await self._send(rest, end=True)

    async def start(self, status: int, headers: Headers) -> None:
        bodiless = self.request.method == "HEAD" or status in NO_BODY_STATUS
        declared = [field for field in headers if field[0] == b"content-length"]
        self._send_head(status, self._headers(headers) + declared, end=bodiless)
        if self.last:  # the response may take long
            self._connection.go_away()

    async def write(self, chunk: bytes) -> None:
        await self._send(memoryview(chunk), end=False)

    def write_now(self, chunk: bytes) -> bool:
        connection, size = self._connection, len(chunk)
        if connection.write_paused or connection.lost or self.gone or self.closed:
            return False
        if size > min(self.send_window, connection.send_window, connection.frame_size):
            return False
        self.send_window -= size
        connection.sent(size)
        connection.write(frames.frame_header(frames.DATA, 0, self.id, size) + chunk)
        return True

    async def finish(self) -> None:
        if not self.closed:
            self.closed = True
            self._connection.write(frames.frame_header(frames.DATA, frames.END_STREAM, self.id, 0))

    async def _send(self, data: memoryview, *, end: bool) -> None:
        """Send in pieces within the stream and connection windows."""
        connection = self._connection
        while data:
            if connection.write_paused:
                await connection.drained()
            if self.gone or connection.lost:
                raise ClientGone("the client went away")
            size = min(len(data), self.send_window, connection.send_window, CHUNK)
            if size <= 0:
                await self._await_credit()
                continue
            self.send_window -= size
            connection.sent(size)
            piece, data = data[:size], data[size:]
            self.closed = end and not data
            connection.write(
                frames.data_frames(self.id, piece, end_stream=self.closed, frame_size=connection.frame_size)
            )

    async def _await_credit(self) -> None:
        connection = self._connection
        self._credit = connection.loop.create_future()
        self.deadline = connection.state.now + connection.state.limits.write_timeout
        connection.waiting.add(self)
        try:
            await self._credit
        finally:
            self.deadline = NEVER
            connection.waiting.discard(self)

    def credit(self) -> None:
        """Wake the sender after a window has grown."""
        if self._credit is not None and not self._credit.done():
            self._credit.set_result(None)

    def receive_data(self, data: bytes, padding: int) -> None:
        if data:
            self.receive(data)

    def receive_reset(self, code: int) -> None:
        self.closed = True
        self.leave()
        self._connection.settle()

    def fail(self, failure: StreamFailure) -> None:
        self.reset(failure.code)
        self._connection.settle()

    def leave(self) -> None:
        super().leave()
        self.credit()

    def abort(self) -> None:
        self.reset(frames.ErrorCode.INTERNAL_ERROR)

    def reset(self, code: frames.ErrorCode) -> None:
        """Reset the stream."""
        if not self.closed and not self.gone:
            self._connection.write(frames.rst_stream(self.id, code))
        self.closed = True
        self.leave()

    def want_body(self, limit: int) -> None:
        """Grant credit for the whole body at once, bounded by the limit."""
        if self.request.header(b"expect").lower() == "100-continue":
            block = encode_response(100, [])
            self._connection.write(frames.header_frames(self.id, block, end_stream=False, frame_size=len(block)))
        self.want_more(min(limit + self.receive_window, frames.MAX_WINDOW))

    def want_more(self, size: int) -> None:
        grant = size - self.receive_window
        if grant > 0:
            self.receive_window += grant
            self._connection.write(frames.window_update(self.id, grant))

    def done(self) -> None:
        self._connection.answered(self)

    def _send_head(self, status: int, headers: Headers, *, end: bool = False) -> None:
        block = encode_response(status, headers)
        self.started = True
        self.closed = end
        self._connection.write(
            frames.header_frames(self.id, block, end_stream=end, frame_size=self._connection.frame_size)
        )

    def _headers(self, headers: Headers) -> Headers:
        """Return the server's and the handler's fields. `connection: close` requests a new connection, as in
        net/http."""
        own = [self._connection.state.date_header]
        for field in headers:
            if field[0] not in _OWN_FIELDS:
                own.append(field)
            elif field[0] == b"connection" and field[1].lower() == b"close":
                self.last = True
        return own

    def _bodiless(self, response: Response, size: int) -> Headers:
        headers = self._headers(response.headers)
        if response.status not in NO_BODY_STATUS:
            declared = next((value for name, value in response.headers if name == b"content-length"), b"%d" % size)
            headers.append((b"content-length", declared))
        return headers

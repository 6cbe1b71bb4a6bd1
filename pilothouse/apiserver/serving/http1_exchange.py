"""An HTTP/1.1 request and its response."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from pilothouse.apiserver.head_fields import check_fields
from pilothouse.apiserver.http import Headers, Response
from pilothouse.apiserver.serving.exchange import NO_BODY_STATUS, ClientGone
from pilothouse.apiserver.serving.transport import CHUNK, ConnectionExchange

if TYPE_CHECKING:
    from pilothouse.apiserver.serving.http1 import Http1Connection

UNREAD: Final = 64 << 10
"""Maximum bytes of read-ahead and pipelined data."""
_ONE_WRITE: Final = 64 << 10
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding", b"connection", b"date"})


class _StatusLines(dict[int, bytes]):
    def __missing__(self, status: int) -> bytes:
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
        line = self[status] = f"HTTP/1.1 {status} {phrase}\r\n".encode()
        return line


STATUS_LINES: Final = _StatusLines()


class Http1Exchange(ConnectionExchange):
    __slots__ = ("_chunked", "_continue", "_left_to_send", "_version_1_0", "allowance", "keep_alive")

    _connection: Http1Connection

    def __init__(
        self, connection: Http1Connection, *, keep_alive: bool, version_1_0: bool, expects_continue: bool
    ) -> None:
        super().__init__()
        self.keep_alive = keep_alive
        self.allowance = UNREAD
        self._connection = connection
        self._continue = expects_continue
        self._version_1_0 = version_1_0
        self._chunked = False
        self._left_to_send: int | None = None  # remaining declared length of a stream

    def send_whole(self, response: Response, body: bytes) -> memoryview | None:
        if self.gone:
            return None
        size = len(body)
        transport = self._connection.transport
        if self.request.method == "HEAD" or response.status in NO_BODY_STATUS:
            # The head of the equivalent GET. For an empty body, the handler may declare the length.
            declared = next((value for name, value in response.headers if name == b"content-length"), b"%d" % size)
            framing = b"" if response.status in NO_BODY_STATUS else b"content-length: %b\r\n" % declared
            transport.write(self._head(response.status, response.headers, framing))
            return None
        head = self._head(response.status, response.headers, b"content-length: %d\r\n" % size)
        if size <= _ONE_WRITE:
            transport.write(head + body)
            return None
        transport.write(head)
        return memoryview(body)

    async def send_rest(self, rest: memoryview) -> None:
        connection = self._connection
        for at in range(0, len(rest), CHUNK):
            if connection.write_paused or connection.lost:
                await connection.drained()
            connection.transport.write(rest[at : at + CHUNK])

    async def start(self, status: int, headers: Headers) -> None:
        framing = b""
        if declared := next((value for name, value in headers if name == b"content-length"), None):
            self._left_to_send = int(declared)
            framing = b"content-length: %b\r\n" % declared
        elif self._version_1_0:
            self.keep_alive = False
        elif status not in NO_BODY_STATUS:
            self._chunked = True
            framing = b"transfer-encoding: chunked\r\n"
        self._connection.transport.write(self._head(status, headers, framing))

    async def write(self, chunk: bytes) -> None:
        connection = self._connection
        if connection.lost:
            raise ClientGone("the client went away")
        if self._left_to_send is not None:
            self._left_to_send -= len(chunk)
        if len(chunk) > _ONE_WRITE:
            if self._chunked:
                self._connection.transport.write(b"%x\r\n" % len(chunk))
            await self.send_rest(memoryview(chunk))
            if self._chunked:
                self._connection.transport.write(b"\r\n")
        else:
            connection.transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if self._chunked else chunk)
        if connection.write_paused:
            await connection.drained()

    def write_now(self, chunk: bytes) -> bool:
        connection = self._connection
        if connection.write_paused or connection.lost or not self._chunked or len(chunk) > _ONE_WRITE:
            return False
        connection.transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        return True

    async def finish(self) -> None:
        if self._chunked and self.request.method != "HEAD":
            self._connection.transport.write(b"0\r\n\r\n")
        elif self._left_to_send and self.request.method != "HEAD":
            self.abort()

    def abort(self) -> None:
        self._connection.transport.abort()

    def want_body(self, limit: int) -> None:
        self.allowance = limit
        if self._continue:
            self._continue = False
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._connection.read_on()

    def want_more(self, size: int) -> None:
        self.want_body(self.body_size + size)

    def done(self) -> None:
        self._connection.answered(self)

    async def upgrade(self, response: Response) -> None:
        assert response.upgrade is not None
        if self.gone:
            return
        check_fields(response.headers)
        received = self._connection.hand_over()
        lines = [STATUS_LINES[response.status], *(b"%b: %b\r\n" % field for field in response.headers), b"\r\n"]
        self._connection.transport.write(b"".join(lines))
        self.started = True
        await response.upgrade(self._connection.transport, received)

    def _head(self, status: int, headers: Headers, framing: bytes) -> bytes:
        check_fields(headers)
        parts = [STATUS_LINES[status], self._connection.state.date_line]
        for name, value in headers:
            if name not in _FRAMING:
                parts.append(b"%b: %b\r\n" % (name, value))
            elif name == b"connection" and value.lower() == b"close":
                self.keep_alive = False
        if not self.ended or self._connection.state.draining:
            self.keep_alive = False
        if not self.keep_alive:
            parts.append(b"connection: close\r\n")
        elif self._version_1_0:
            parts.append(b"connection: keep-alive\r\n")
        if framing:
            parts.append(framing)
        parts.append(b"\r\n")
        self.started = True
        return b"".join(parts)

"""An HTTP/2 client stream: request and response within the flow-control windows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from pilothouse.apiserver.head_fields import InvalidHead
from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.frames import (
    CONNECTION_FIELDS,
    ErrorCode,
    Field,
    StreamFailure,
    content_length,
    malformed,
)
from pilothouse.apiserver.http2.hpack import encode_request
from pilothouse.apiserver.outbound.exchange import BackendExchange, Head
from pilothouse.apiserver.outbound.failures import SERVER_SHUTTING_DOWN, BackendFailed
from pilothouse.apiserver.serving.exchange import NO_BODY_STATUS
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.apiserver.outbound.http2_connection import Http2BackendConnection


@dataclass(frozen=True, slots=True)
class ResponseFields:
    status: int
    headers: Headers
    content_length: int | None


def response_fields(fields: list[Field] | None) -> ResponseFields:
    """Validate the fields. Raises StreamFailure."""
    if not fields:
        raise malformed("there are no header fields, or too many")
    (name, status), *headers = fields
    if name != b":status" or len(status) != 3 or not status.isdigit():
        raise malformed("an answer does not begin with its status")
    length: int | None = None
    for name, value in headers:
        if name[0] == 58 or name in CONNECTION_FIELDS:  # 58 is a colon
            raise malformed("a header field is out of place")
        if name == b"content-length":
            length = content_length(value, length)
    return ResponseFields(int(status), headers, length)


STREAM_WINDOW: Final = 512 << 10
"""Receive window of a response."""


class BackendStream(BackendExchange):
    def __init__(self, connection: Http2BackendConnection, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.id = 0  # before the request starts
        self.send_window = 0
        self.reused = False
        self.connection = connection
        self._bodiless = False
        self._block: bytes | None = None  # of an unstarted request
        self._unsent = memoryview(b"")  # waiting for credit
        self._last = False  # the unsent data is the last
        self._sent = False  # END_STREAM sent
        self._flushed = asyncio.Event()  # all data sent, or sending abandoned
        self.receive_window = STREAM_WINDOW
        self._owed = 0  # credit for data read
        self.expected: int | None = None  # remaining declared length of the body
        self._closed = False

    # Request

    def send_head(self, method: str, target: str, headers: Headers) -> None:
        authority = next((value for name, value in headers if name == b"host"), b"")
        others = [field for field in headers if field[0] != b"host"]
        try:
            self._block = encode_request(method.encode(), target.encode("latin-1"), authority, others)
        except InvalidHead as error:
            raise BackendFailed(str(error)) from None
        self._ended = False
        self._bodiless = method == "HEAD"

    def send_end(self, body: bytes = b"") -> None:
        self._unsent, self._last = memoryview(body), True
        self.flush()

    async def send_stream(self, body: AsyncIterator[bytes]) -> None:
        async for chunk in body:
            self._unsent = memoryview(chunk)
            self._flushed.clear()
            self.flush()
            await self._flushed.wait()
            if self._ended or self._failure or self._closed:
                return
            await self.connection.drained.wait()
        self.send_end()

    def flush(self) -> None:
        """Send within the windows; called again when the windows grow."""
        if self._failure is not None or self._closed or self._sent:
            return
        out = [] if self._block is None else [self._begin(self._block)]
        if self._failure is not None:
            return
        out.append(self._take_unsent())
        if self._unsent:
            self.connection.waiting.add(self)
        else:
            self.connection.waiting.discard(self)
            self._flushed.set()
            if self._last and not self._sent:
                self._sent = True
                out.append(frames.frame_header(frames.DATA, frames.END_STREAM, self.id, 0))
        self.connection.write(b"".join(out))

    def _begin(self, block: bytes) -> bytes:
        self._block = None
        if not self.connection.begin(self):
            self.break_off(SERVER_SHUTTING_DOWN, unprocessed=True)
            return b""
        self._sent = self._last and not self._unsent
        return frames.header_frames(self.id, block, end_stream=self._sent, frame_size=self.connection.frame_size)

    def _take_unsent(self) -> bytes:
        connection = self.connection
        size = min(len(self._unsent), self.send_window, connection.send_window)
        if size <= 0:
            return b""
        self.send_window -= size
        connection.sent(size)
        piece, self._unsent = self._unsent[:size], self._unsent[size:]
        self._sent = self._last and not self._unsent
        return frames.data_frames(self.id, piece, end_stream=self._sent, frame_size=connection.frame_size)

    def credit(self) -> None:
        self.flush()

    # Response

    @property
    def headed(self) -> bool:
        return self._head is not None

    @property
    def ended(self) -> bool:
        return self._ended

    def receive_head(self, fields: list[Field] | None, *, end_stream: bool) -> None:
        """Handle the response head. Raises StreamFailure."""
        answer = response_fields(fields)
        if 100 <= answer.status < 200:
            if end_stream:
                raise malformed("an interim answer ends the stream")
            return
        if not self._bodiless and answer.status not in NO_BODY_STATUS:
            self.expected = answer.content_length
        self._head = Head(answer.status, answer.headers)
        self._wake()

    def receive_data(self, data: bytes, padding: int) -> None:
        if self._head is None:
            raise malformed("DATA before HEADERS")
        if data:
            self._put(data)
            self._wake()
        if padding:
            self._body_read(padding)

    def receive_end(self) -> None:
        self._ended = True
        self._flushed.set()
        self._wake()

    def receive_reset(self, code: int) -> None:
        name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
        reason = f"stream error: stream ID {self.id}; {name}; received from peer"
        self.break_off(reason, unprocessed=code == ErrorCode.REFUSED_STREAM)

    def _body_read(self, size: int) -> None:
        self._owed += size
        if self._owed >= STREAM_WINDOW // 2 and not self._ended and not self._closed:
            self.receive_window += self._owed
            self.connection.write(frames.window_update(self.id, self._owed))
            self._owed = 0

    # Ending

    def fail(self, failure: StreamFailure) -> None:
        self.connection.write(frames.rst_stream(self.id, failure.code))
        self.break_off(f"stream error: stream ID {self.id}; {failure.code.name}; {failure}")

    def break_off(self, reason: str, *, unprocessed: bool = False) -> None:
        """Fail the stream; the server sends nothing more."""
        self.connection.waiting.discard(self)
        if not self._ended:
            self._break_off(reason, unprocessed=unprocessed)
        self._flushed.set()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._flushed.set()
            self.connection.release(self, complete=self._ended and self._sent)

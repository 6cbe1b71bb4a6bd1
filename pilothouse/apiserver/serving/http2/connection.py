"""HTTP/2 connections: the requests that come in frames.

Guarantees: a client that breaks the protocol loses its stream or its connection, never more; what is buffered is
bounded by the windows that we grant; requests that were reset keep counting until their handlers return, so that
resetting does not buy concurrency; a flood of frames that cost nothing ends the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.serving.http2 import frames
from pilothouse.apiserver.serving.http2.control import RECEIVE_WINDOW, Http2Control, wrong
from pilothouse.apiserver.serving.http2.field_block import FieldBlock
from pilothouse.apiserver.serving.http2.flood import WORTH_A_FRAME
from pilothouse.apiserver.serving.http2.frames import ConnectionFailure, ErrorCode, StreamFailure
from pilothouse.apiserver.serving.http2.hpack import Decoder, Field, encode_response
from pilothouse.apiserver.serving.http2.reader import Frame, FrameReader
from pilothouse.apiserver.serving.http2.request import check_trailers, request_fields
from pilothouse.apiserver.serving.http2.stream import Http2Stream
from pilothouse.apiserver.serving.state import ServingState
from pilothouse.apiserver.serving.target import BadTarget, parse_target


class Http2Connection(Http2Control):
    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(state, loop)
        self._reader = FrameReader()
        self._decoder = Decoder(state.limits.header_bytes)
        self._block: FieldBlock | None = None  # while its CONTINUATION frames are awaited
        self._receive_window = RECEIVE_WINDOW

    def receive(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        try:
            for frame in self._reader.feed(data):
                self._handle(frame)
        except ConnectionFailure as failure:
            self.fail(failure)

    def _handle(self, frame: Frame) -> None:
        if self._block is not None and (frame.kind != frames.CONTINUATION or frame.stream != self._block.stream_id):
            raise wrong("a field block is interrupted")
        if not self.settled and frame.kind != frames.SETTINGS:
            raise wrong("the first frame is not SETTINGS")
        handler = _HANDLERS.get(frame.kind)
        if handler is None:
            self.spend()
            return
        try:
            handler(self, frame)
        except StreamFailure as failure:
            self.spend()
            self.fail_stream(frame.stream, failure)

    def _on_headers(self, frame: Frame) -> None:
        fragment = frames.field_fragment(frame.flags, frame.payload)
        end_stream = bool(frame.flags & frames.END_STREAM)
        if frame.flags & frames.END_HEADERS:
            self._on_fields(frame.stream, self._decoder.decode(fragment), end_stream=end_stream)
            return
        deadline = self.state.now + self.state.limits.header_timeout
        self._block = FieldBlock(self._decoder, frame.stream, end_stream=end_stream, deadline=deadline)
        self._block.add(fragment)

    def _on_continuation(self, frame: Frame) -> None:
        block = self._block
        if block is None:
            raise wrong("a CONTINUATION frame continues nothing")
        block.add(frame.payload)
        if frame.flags & frames.END_HEADERS:
            self._block = None
            self._on_fields(block.stream_id, block.end(), end_stream=block.end_stream)

    def _on_fields(self, stream_id: int, fields: list[Field] | None, *, end_stream: bool) -> None:
        if not stream_id & 1:
            raise wrong("a client's stream has an even number")
        if stream_id <= self.highest:
            self._on_trailers(stream_id, fields, end_stream=end_stream)
            return
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
        asked = request_fields(fields)
        if end_stream and asked.content_length:
            raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "the body is not as long as was declared")
        try:
            target = parse_target(asked.target)
        except BadTarget:
            self._refuse(stream_id, 400, end_stream=end_stream)
            return
        stream = Http2Stream(self, stream_id, self.initial_window)
        stream.request = Request(
            asked.method.decode("latin-1"),
            target.path,
            target.query_string,
            asked.headers,
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
            stream.expected = asked.content_length
            stream.body_deadline = self.state.now + self.state.limits.body_timeout
        self.opened(stream)
        stream.task = self.loop.create_task(stream.run(self.state.handler))

    def _on_trailers(self, stream_id: int, fields: list[Field] | None, *, end_stream: bool) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            self.spend_on_answer()
            return
        if stream.ended or not end_stream:
            raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "a second HEADERS frame does not end the stream")
        check_trailers(fields or [])
        self._end(stream)

    def _refuse(self, stream_id: int, status: int, *, end_stream: bool) -> None:
        block = encode_response(status, [self.state.date_header, (b"content-length", b"0")])
        self.write(frames.header_frames(stream_id, block, end_stream=True, frame_size=self.frame_size))
        if not end_stream:
            self.write(frames.rst_stream(stream_id, ErrorCode.NO_ERROR))

    def _on_data(self, frame: Frame) -> None:
        self.check_opened(frame.stream)
        size = len(frame.payload)
        self._take_credit(size)
        stream = self.streams.get(frame.stream)
        if stream is None:
            if size < WORTH_A_FRAME:
                self.spend_on_answer()
            return
        if stream.ended:
            raise StreamFailure(ErrorCode.STREAM_CLOSED, "DATA after the end of the stream")
        stream.receive_window -= size
        if stream.receive_window < 0:
            raise StreamFailure(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than was granted")
        if data := frames.unpadded(frame.flags, frame.payload):
            stream.receive(data)
        elif not frame.flags & frames.END_STREAM:
            self.spend()
        if frame.flags & frames.END_STREAM:
            self._end(stream)

    def _take_credit(self, size: int) -> None:
        self._receive_window -= size
        if self._receive_window < 0:
            raise wrong("more DATA than was granted", ErrorCode.FLOW_CONTROL_ERROR)
        if self._receive_window < RECEIVE_WINDOW // 2:
            self.write(frames.window_update(0, RECEIVE_WINDOW - self._receive_window))
            self._receive_window = RECEIVE_WINDOW

    def _end(self, stream: Http2Stream) -> None:
        if stream.expected is not None and stream.expected != stream.body_size:
            raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "the body is not as long as was declared")
        stream.receive_end()

    def sweep(self, now: float) -> None:
        super().sweep(now)
        if self._block is not None and now > self._block.deadline:
            self.abort()


_HANDLERS: Final[dict[int, Callable[[Http2Connection, Frame], None]]] = {
    frames.DATA: Http2Connection._on_data,
    frames.HEADERS: Http2Connection._on_headers,
    frames.PRIORITY: Http2Connection.on_priority,
    frames.RST_STREAM: Http2Connection.on_rst_stream,
    frames.SETTINGS: Http2Connection.on_settings,
    frames.PUSH_PROMISE: Http2Connection.on_push_promise,
    frames.PING: Http2Connection.on_ping,
    frames.GOAWAY: Http2Connection.on_goaway,
    frames.WINDOW_UPDATE: Http2Connection.on_window_update,
    frames.CONTINUATION: Http2Connection._on_continuation,
}

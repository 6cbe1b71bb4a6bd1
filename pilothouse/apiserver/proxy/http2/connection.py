"""One HTTP/2 connection to another server, for many requests at once.

Guarantees: a server that breaks the protocol fails its request or its connection, never more; what waits to be read is
bounded by the window of each stream, so that one slow reader does not hold the others back; a request that the server
says it has not looked at fails as `unprocessed`; a connection on which nothing is heard is asked for a sign of life.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pilothouse.apiserver.proxy.connection import INPUT
from pilothouse.apiserver.proxy.http2.control import (
    FRAME_SIZE,
    HEADER_BYTES,
    RECEIVE_WINDOW,
    Http2BackendControl,
    sized,
)
from pilothouse.apiserver.serving.http2 import frames
from pilothouse.apiserver.serving.http2.control import wrong
from pilothouse.apiserver.serving.http2.field_block import FieldBlock
from pilothouse.apiserver.serving.http2.flood import WORTH_A_FRAME
from pilothouse.apiserver.serving.http2.frames import ConnectionFailure, ErrorCode, StreamFailure
from pilothouse.apiserver.serving.http2.hpack import Decoder, Field
from pilothouse.apiserver.serving.http2.reader import Frame, FrameReader


class Http2BackendConnection(Http2BackendControl):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._reader = FrameReader(greeted=True, frame_size=FRAME_SIZE)
        self._decoder = Decoder(HEADER_BYTES)
        self._block: FieldBlock | None = None  # while its CONTINUATION frames are awaited
        self._receive_window = RECEIVE_WINDOW

    def get_buffer(self, sizehint: int) -> memoryview:
        return INPUT

    def buffer_updated(self, nbytes: int) -> None:
        self.heard = True
        try:
            for frame in self._reader.feed(bytes(INPUT[:nbytes])):
                self._handle(frame)
        except ConnectionFailure as failure:
            self.write(frames.goaway(0, failure.code, str(failure).encode()))
            self.fail(f"http2: {failure}")

    def _handle(self, frame: Frame) -> None:
        if self._block is not None and (frame.kind != frames.CONTINUATION or frame.stream != self._block.stream_id):
            raise wrong("a field block is interrupted")
        handler = _HANDLERS.get(frame.kind)
        if handler is None:
            self.spend()
            return
        try:
            handler(self, frame)
        except StreamFailure as failure:
            self.write(frames.rst_stream(frame.stream, failure.code))
            if (stream := self.streams.pop(frame.stream, None)) is not None:
                stream.break_off(f"stream error: stream ID {frame.stream}; {failure.code.name}; {failure}")

    def _on_data(self, frame: Frame) -> None:
        size, end_stream = len(frame.payload), bool(frame.flags & frames.END_STREAM)
        self._receive_window -= size
        if self._receive_window < RECEIVE_WINDOW // 2:
            self.write(frames.window_update(0, RECEIVE_WINDOW - self._receive_window))
            self._receive_window = RECEIVE_WINDOW
        self._check_begun(frame.stream)
        if not size and not end_stream:
            self.spend()
        if (stream := self.streams.get(frame.stream)) is not None:
            stream.receive_data(frames.unpadded(frame.flags, frame.payload), size=size, end_stream=end_stream)
        elif size < WORTH_A_FRAME:
            self.spend_on_answer()

    def _on_headers(self, frame: Frame) -> None:
        fragment = frames.field_fragment(frame.flags, frame.payload)
        end_stream = bool(frame.flags & frames.END_STREAM)
        if frame.flags & frames.END_HEADERS:
            self._on_fields(frame.stream, self._decoder.decode(fragment), end_stream=end_stream)
            return
        self._block = FieldBlock(self._decoder, frame.stream, end_stream=end_stream, deadline=0)
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
        """Every block was decoded, for the table changes with each."""
        self._check_begun(stream_id)
        if (stream := self.streams.get(stream_id)) is not None:
            stream.receive_fields(fields, end_stream=end_stream)
        else:
            self.spend_on_answer()

    def _check_begun(self, stream_id: int) -> None:
        if not stream_id & 1 or stream_id >= self.next_id:
            raise wrong("a frame is for a stream that was not opened")

    def _on_rst_stream(self, frame: Frame) -> None:
        self.spend()
        code = frames.read_long(sized(frame, 4))
        if (stream := self.streams.pop(frame.stream, None)) is not None:
            name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
            why = f"stream error: stream ID {frame.stream}; {name}; received from peer"
            stream.break_off(why, unprocessed=code == ErrorCode.REFUSED_STREAM)

    def _on_push_promise(self, frame: Frame) -> None:
        raise wrong("the server pushes")


_HANDLERS: Final[dict[int, Callable[[Http2BackendConnection, Frame], None]]] = {
    frames.DATA: Http2BackendConnection._on_data,
    frames.HEADERS: Http2BackendConnection._on_headers,
    frames.RST_STREAM: Http2BackendConnection._on_rst_stream,
    frames.SETTINGS: Http2BackendConnection.on_settings,
    frames.PUSH_PROMISE: Http2BackendConnection._on_push_promise,
    frames.PING: Http2BackendConnection.on_ping,
    frames.GOAWAY: Http2BackendConnection.on_goaway,
    frames.WINDOW_UPDATE: Http2BackendConnection.on_window_update,
    frames.CONTINUATION: Http2BackendConnection._on_continuation,
}

"""Frame dispatch: reads, validates and handles frames by type.

Guarantees, in both roles: a protocol violation costs the peer its stream or connection at most. Buffers are bounded by
the granted windows. A flood of free frames ends the connection.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final

from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.control import Control, S, connection_error
from pilothouse.apiserver.http2.frames import (
    DEFAULT_FRAME_SIZE,
    ConnectionFailure,
    ErrorCode,
    Field,
    StreamFailure,
    check_complete,
    check_trailers,
)
from pilothouse.apiserver.http2.hpack import CutOff, Decoder
from pilothouse.apiserver.http2.reader import WORTH_A_FRAME, Frame, FrameReader

_SPARE_FRAMES: Final = 16


class FieldBlock:
    """A field block split over several frames, bounded in size and number of frames (CVE-2024-27316).

    Each frame is decoded on arrival, so its cost is proportional to its size.
    """

    __slots__ = ("_decoder", "_fields", "_frames", "_rest", "_size", "_used", "deadline", "end_stream", "stream_id")

    def __init__(self, decoder: Decoder, stream_id: int, *, end_stream: bool, deadline: float) -> None:
        self.stream_id = stream_id
        self.end_stream = end_stream
        self.deadline = deadline
        self._decoder = decoder
        self._frames = decoder.limit // DEFAULT_FRAME_SIZE + _SPARE_FRAMES  # remaining frames
        self._size = 0  # received bytes
        self._rest = b""  # an incomplete field
        self._fields: list[Field] = []
        self._used = 0  # size of the decoded fields

    def add(self, fragment: bytes) -> None:
        """Add a fragment. Raises ConnectionFailure, like x/net/http2, if an oversized block continues."""
        self._frames -= 1
        if self._frames < 0:
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM, "a field block has too many frames")
        limit = self._decoder.limit
        self._size += len(fragment)
        if self._size > limit or len(fragment) > 2 * max(0, limit - self._used):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "a field block is too large")
        part = self._rest + fragment
        at, self._used = self._decoder.decode_part(part, self._fields, self._used)
        self._rest = part[at:]

    def end(self) -> list[Field] | None:
        """Return the fields, or None beyond the limit."""
        if self._rest:
            raise CutOff
        return None if self._used > self._decoder.limit else self._fields


class FrameDispatcher(Control[S]):
    def __init__(self, reader: FrameReader, *, header_bytes: int, header_timeout: float, receive_window: int) -> None:
        """`receive_window`: the connection window, refilled as data arrives; the stream windows bound the buffers."""
        super().__init__()
        self._reader = reader
        self._decoder = Decoder(header_bytes)
        self._header_timeout = header_timeout
        self._full_window = self._receive_window = receive_window
        self._block: FieldBlock | None = None  # pending CONTINUATION frames
        self.over = False  # ignore further input

    @abstractmethod
    def on_head(self, stream_id: int, fields: list[Field] | None, *, end_stream: bool) -> None:
        """Handle a field list other than trailers; None if too large. Raises Failures."""

    @abstractmethod
    def fail(self, failure: ConnectionFailure) -> None:
        """End the connection after a protocol violation."""

    def receive(self, data: bytes) -> None:
        """Handle all frames completed by the data."""
        if not self.over:
            try:
                self.handle(self._reader.feed(data))
            except ConnectionFailure as failure:
                self.fail(failure)

    def handle(self, arrived: Iterable[Frame]) -> None:
        """Raises ConnectionFailure."""
        for frame in arrived:
            self.dispatch(frame)

    def is_late(self, now: float) -> bool:
        """Return whether a field block is overdue."""
        return self._block is not None and now > self._block.deadline

    def dispatch(self, frame: Frame) -> None:
        """Raises ConnectionFailure."""
        if self._block is not None and (frame.kind != frames.CONTINUATION or frame.stream != self._block.stream_id):
            raise connection_error("a field block is interrupted")
        if not self.settled and frame.kind != frames.SETTINGS:
            raise connection_error("the first frame is not SETTINGS")
        handler = _HANDLERS.get(frame.kind)
        if handler is None:
            self.spend()
            return
        try:
            handler(self, frame)
        except StreamFailure as failure:
            self.spend()
            self.fail_stream(frame.stream, failure)

    # Field lists: every block must be decoded, because each changes the dynamic table

    def _on_headers(self, frame: Frame) -> None:
        fragment = frames.field_fragment(frame.flags, frame.payload)
        end_stream = frame.flags & frames.END_STREAM != 0
        if frame.flags & frames.END_HEADERS:
            self._on_fields(frame.stream, self._decoder.decode(fragment), end_stream=end_stream)
            return
        deadline = self.now() + self._header_timeout
        self._block = FieldBlock(self._decoder, frame.stream, end_stream=end_stream, deadline=deadline)
        self._block.add(fragment)

    def _on_continuation(self, frame: Frame) -> None:
        block = self._block
        if block is None:
            raise connection_error("a CONTINUATION frame continues nothing")
        block.add(frame.payload)
        if frame.flags & frames.END_HEADERS:
            self._block = None
            self._on_fields(block.stream_id, block.end(), end_stream=block.end_stream)

    def _on_fields(self, stream_id: int, fields: list[Field] | None, *, end_stream: bool) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            if stream_id & 1 and stream_id <= self.highest:  # closed stream
                self.spend_on_answer()
            else:
                self.on_head(stream_id, fields, end_stream=end_stream)
        elif stream.headed:
            if stream.ended:
                raise StreamFailure(ErrorCode.STREAM_CLOSED, "a frame after the end of the stream")
            if not end_stream:
                raise StreamFailure(ErrorCode.PROTOCOL_ERROR, "a second HEADERS frame does not end the stream")
            check_trailers(fields or [])
            self.end(stream)
        else:
            self.on_head(stream_id, fields, end_stream=end_stream)

    # Bodies

    def _on_data(self, frame: Frame) -> None:
        self.check_opened(frame.stream)
        size = len(frame.payload)
        self._receive_window -= size
        if self._receive_window < 0:
            raise connection_error("more DATA than was granted", ErrorCode.FLOW_CONTROL_ERROR)
        if self._receive_window < self._full_window // 2:
            self.write(frames.window_update(0, self._full_window - self._receive_window))
            self._receive_window = self._full_window
        if (stream := self.streams.get(frame.stream)) is not None:
            self._on_stream_data(stream, frame, size)
        elif size < WORTH_A_FRAME:
            self.spend_on_answer()

    def _on_stream_data(self, stream: S, frame: Frame, size: int) -> None:
        if stream.ended:
            raise StreamFailure(ErrorCode.STREAM_CLOSED, "a frame after the end of the stream")
        stream.receive_window -= size
        if stream.receive_window < 0:
            raise StreamFailure(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than was granted")
        data, end_stream = frames.unpadded(frame.flags, frame.payload), frame.flags & frames.END_STREAM
        if not data and not end_stream:
            self.spend()
        stream.receive_data(data, size - len(data))
        if stream.expected is not None:
            stream.expected -= len(data)
        if end_stream:
            self.end(stream)

    def end(self, stream: S) -> None:
        """Handle the end of the peer's message. Raises StreamFailure on a length mismatch."""
        check_complete(stream.expected)
        stream.receive_end()


_HANDLERS: Final[dict[int, Callable[[FrameDispatcher[Any], Frame], None]]] = {
    frames.DATA: FrameDispatcher._on_data,
    frames.HEADERS: FrameDispatcher._on_headers,
    frames.PRIORITY: FrameDispatcher.on_priority,
    frames.RST_STREAM: FrameDispatcher.on_rst_stream,
    frames.SETTINGS: FrameDispatcher.on_settings,
    frames.PUSH_PROMISE: FrameDispatcher.on_push_promise,
    frames.PING: FrameDispatcher.on_ping,
    frames.GOAWAY: FrameDispatcher.on_goaway,
    frames.WINDOW_UPDATE: FrameDispatcher.on_window_update,
    frames.CONTINUATION: FrameDispatcher._on_continuation,
}

"""The connection itself under HTTP/2: writing, windows, settings, pings, leaving — all that is not a request."""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.apiserver.serving.http2 import frames
from pilothouse.apiserver.serving.http2.flood import FloodBudget
from pilothouse.apiserver.serving.http2.frames import ConnectionFailure, ErrorCode, Setting, StreamFailure
from pilothouse.apiserver.serving.http2.hpack import TABLE_SIZE
from pilothouse.apiserver.serving.http2.reader import Frame
from pilothouse.apiserver.serving.http2.stream import Http2Stream
from pilothouse.apiserver.serving.state import NEVER, ServingState
from pilothouse.apiserver.serving.transport import ClientConnection

RECEIVE_WINDOW: Final = 1 << 20
"""Of the connection. It is refilled as data comes: the streams' own windows bound what is held."""
_TOGETHER: Final = 64 << 10


def wrong(why: str, code: ErrorCode = ErrorCode.PROTOCOL_ERROR) -> ConnectionFailure:
    return ConnectionFailure(code, why)


def _check_size(frame: Frame, size: int) -> None:
    if len(frame.payload) != size:
        raise wrong("a frame has the wrong size", ErrorCode.FRAME_SIZE_ERROR)


class Http2Control(ClientConnection):
    def __init__(self, state: ServingState, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(state, loop)
        self.send_window = frames.DEFAULT_WINDOW
        self.frame_size = frames.DEFAULT_FRAME_SIZE  # the largest that the client takes
        self.waiting: set[Http2Stream] = set()  # streams that wait for credit
        self.deadline = NEVER  # for the client to begin, to complete a field block, or to ask for something
        self.settled = False  # the client's first SETTINGS have come
        self.initial_window = frames.DEFAULT_WINDOW  # for sending on new streams
        self.streams: dict[int, Http2Stream] = {}  # open in at least one direction
        self.running: set[Http2Stream] = set()  # whose handlers run; some may be reset
        self.highest = 0  # stream that the client has opened
        self.leaving = False  # GOAWAY is sent or received: no new streams
        self._floods = FloodBudget(state.now)
        self._acknowledged = False  # the client has said that it knows our SETTINGS
        self._out: list[bytes] = []  # written in this turn of the event loop
        self._out_size = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        limits = self.state.limits
        self.deadline = self.state.now + limits.header_timeout
        announced = {
            Setting.MAX_CONCURRENT_STREAMS: limits.http2_streams,
            Setting.MAX_HEADER_LIST_SIZE: limits.header_bytes,
            Setting.HEADER_TABLE_SIZE: TABLE_SIZE,
        }
        grown = frames.window_update(0, RECEIVE_WINDOW - frames.DEFAULT_WINDOW)
        self.transport.write(frames.settings(announced) + grown)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for stream in (*self.streams.values(), *self.running):
            stream.leave()
        self.streams.clear()

    # Writing

    def write(self, data: bytes) -> None:
        """Writes at the end of this turn of the event loop, together with what else the turn brings; much, at once."""
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

    # Frames

    def spend(self) -> None:
        """Counts a frame that costs the client nothing."""
        if not self._floods.spend(self.state.now):
            raise wrong("too many frames that ask for nothing", ErrorCode.ENHANCE_YOUR_CALM)

    def spend_on_answer(self) -> None:
        """Counts a frame that costs the client nothing, unless what it was sent is the reason."""
        if not self._floods.spend_on_answer(self.state.now):
            raise wrong("too many frames that ask for nothing", ErrorCode.ENHANCE_YOUR_CALM)

    def on_settings(self, frame: Frame) -> None:
        if frame.stream:
            raise wrong("SETTINGS on a stream")
        if frame.flags & frames.ACK:
            self._on_settings_ack(frame)
            return
        if self.settled:
            self.spend()
        self.settled = True
        for name, value in frames.read_settings(frame.payload).items():
            self._apply(name, value)
        self.write(frames.SETTINGS_ACK)

    def _on_settings_ack(self, frame: Frame) -> None:
        """We send SETTINGS once."""
        _check_size(frame, 0)
        if self._acknowledged:
            raise wrong("settings are acknowledged that were not sent")
        self._acknowledged = True

    def _apply(self, name: int, value: int) -> None:
        if name == Setting.INITIAL_WINDOW_SIZE:
            if value > frames.MAX_WINDOW:
                raise wrong("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
            self._resize_windows(value - self.initial_window)
            self.initial_window = value
        elif name == Setting.MAX_FRAME_SIZE:
            if not frames.DEFAULT_FRAME_SIZE <= value <= frames.MAX_FRAME_SIZE:
                raise wrong("the frame size is out of range")
            self.frame_size = value
        elif name == Setting.ENABLE_PUSH and value > 1:
            raise wrong("ENABLE_PUSH is neither 0 nor 1")

    def _resize_windows(self, change: int) -> None:
        """Windows may become negative; then they must be refilled first."""
        for stream in self.streams.values():
            stream.send_window += change
            if stream.send_window > frames.MAX_WINDOW:
                raise wrong("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
        for waiting in tuple(self.waiting):
            waiting.credit()

    def sent(self, size: int) -> None:
        """DATA was sent: the client may grant new credit for it."""
        self.send_window -= size
        self._floods.sent += size

    def opened(self, stream: Http2Stream) -> None:
        self._floods.opened()
        self.streams[stream.id] = stream
        self.running.add(stream)
        self.deadline = NEVER

    def on_window_update(self, frame: Frame) -> None:
        _check_size(frame, 4)
        self.spend_on_answer()
        increment = frames.read_long(frame.payload)
        if not frame.stream:
            self.send_window += increment
            if not increment or self.send_window > frames.MAX_WINDOW:
                raise wrong("a window grows by nothing or too much", ErrorCode.FLOW_CONTROL_ERROR)
            for waiting in tuple(self.waiting):
                waiting.credit()
            return
        self.check_opened(frame.stream)
        if (stream := self.streams.get(frame.stream)) is not None:
            stream.send_window += increment
            if not increment or stream.send_window > frames.MAX_WINDOW:
                raise StreamFailure(ErrorCode.FLOW_CONTROL_ERROR, "a window grows by nothing or too much")
            stream.credit()

    def on_ping(self, frame: Frame) -> None:
        _check_size(frame, 8)
        if frame.stream:
            raise wrong("PING on a stream")
        self.spend()
        if not frame.flags & frames.ACK:
            self.write(frames.ping_ack(frame.payload))

    def on_rst_stream(self, frame: Frame) -> None:
        _check_size(frame, 4)
        self.check_opened(frame.stream)
        self.spend()
        if (stream := self.streams.pop(frame.stream, None)) is not None:
            stream.closed = True
            stream.leave()
            self.settle()

    def on_priority(self, frame: Frame) -> None:
        _check_size(frame, 5)
        self.spend()

    def on_push_promise(self, frame: Frame) -> None:
        raise wrong("a client pushes")

    def on_goaway(self, frame: Frame) -> None:
        self.spend()
        self.leaving = True
        self.settle()

    def check_opened(self, stream_id: int) -> None:
        if not 0 < stream_id <= self.highest and not self.leaving:
            raise wrong("a frame is for a stream that was not opened")

    # Ending

    def fail(self, failure: ConnectionFailure) -> None:
        self.leaving = True
        self.write(frames.goaway(self.highest, failure.code, str(failure).encode()))
        for stream in (*self.streams.values(), *self.running):
            stream.leave()
        self.close()

    def fail_stream(self, stream_id: int, failure: StreamFailure) -> None:
        stream = self.streams.pop(stream_id, None)
        if stream is None:
            self.write(frames.rst_stream(stream_id, failure.code))
        else:
            stream.reset(failure.code)
            self.settle()

    def answered(self, stream: Http2Stream) -> None:
        self.running.discard(stream)
        if stream.last:
            self.go_away()
        if self.streams.pop(stream.id, None) is not None:
            if not stream.ended and not stream.gone:
                self.write(frames.rst_stream(stream.id, ErrorCode.NO_ERROR))
            self.settle()

    def settle(self) -> None:
        """With no stream open the connection is idle, or done."""
        if self.streams:
            return
        if self.leaving:
            self.close()
        else:
            self.deadline = self.state.now + self.state.limits.idle_timeout

    def go_away(self) -> None:
        """Lets the client know that it needs a new connection for what it has not asked yet."""
        if not self.leaving:
            self.leaving = True
            self.write(frames.goaway(self.highest, ErrorCode.NO_ERROR))

    def drain(self) -> None:
        self.go_away()
        self.settle()

    def close(self) -> None:
        self._flush()
        super().close()

    def sweep(self, now: float) -> None:
        super().sweep(now)
        for stream in tuple(self.streams.values()):
            if now > stream.deadline or (not stream.ended and now > stream.body_deadline):
                self.fail_stream(stream.id, StreamFailure(ErrorCode.CANCEL, "the client is too slow"))
        if now > self.deadline and not self.lost:
            self.drain() if self.settled else self.abort()

"""The HTTP/2 connection to another server itself: its streams, windows, settings, pings, and its end."""

from __future__ import annotations

import asyncio
from typing import Final, cast

from pilothouse.apiserver.proxy.exchange import broken_connection
from pilothouse.apiserver.proxy.http2.stream import STREAM_WINDOW, BackendStream
from pilothouse.apiserver.serving.http2 import frames
from pilothouse.apiserver.serving.http2.control import wrong
from pilothouse.apiserver.serving.http2.flood import FloodBudget
from pilothouse.apiserver.serving.http2.frames import ErrorCode, Setting, StreamFailure
from pilothouse.apiserver.serving.http2.reader import Frame

RECEIVE_WINDOW: Final = 1 << 30
"""Of the connection. It is refilled as data comes: the streams' own windows bound what is held."""
FRAME_SIZE: Final = 128 << 10
HEADER_BYTES: Final = 1 << 20
_STREAMS: Final = 100  # until the server says how many it takes
_QUIET: Final = 30.0
_SIGN_OF_LIFE: Final = 15.0


class Http2BackendControl(asyncio.BufferedProtocol):
    streams: dict[int, BackendStream]  # begun, and not complete in both directions
    _users: set[BackendStream]  # handed out and not released

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.streams, self._users = {}, set()
        self.next_id = 1
        self._most = _STREAMS
        self._leaving = False  # GOAWAY has come, or everything failed: no stream can begin
        self._retired = False  # nobody gets a new stream
        self._floods = FloodBudget(loop.time())
        self._initial_window = frames.DEFAULT_WINDOW  # for sending on new streams
        self.heard, self._asked = True, False
        self._watch: asyncio.TimerHandle | None = None
        self.send_window = frames.DEFAULT_WINDOW
        self.peer_frame_size = frames.DEFAULT_FRAME_SIZE
        self.drained = asyncio.Event()
        self.drained.set()
        self.made = loop.time()
        self.idle_since = loop.time()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are not of asyncio's class
        announced = {
            Setting.ENABLE_PUSH: 0,
            Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            Setting.MAX_FRAME_SIZE: FRAME_SIZE,
            Setting.MAX_HEADER_LIST_SIZE: HEADER_BYTES,
        }
        grown = frames.window_update(0, RECEIVE_WINDOW - frames.DEFAULT_WINDOW)
        self.transport.write(frames.PREFACE + frames.settings(announced) + grown)
        self._watch = self._loop.call_later(_QUIET, self._look)

    # Streams

    @property
    def open(self) -> bool:
        return not self._retired and self._can_begin

    @property
    def _can_begin(self) -> bool:
        return not self._leaving and not self.transport.is_closing() and self.next_id < frames.MAX_STREAM_ID

    @property
    def available(self) -> bool:
        return len(self._users) < self._most and self.open

    @property
    def idle(self) -> bool:
        return not self._users

    def stream(self) -> BackendStream:
        """For one request; it must be closed in the end."""
        stream = BackendStream(self, self._loop)
        stream.reused = self.next_id > 1
        self._users.add(stream)
        return stream

    def begin(self, stream: BackendStream) -> bool:
        """Gives the stream its number. False if the server takes no more."""
        if not self._can_begin:
            return False
        stream.id, stream.send_window = self.next_id, self._initial_window
        self.next_id += 2
        self.streams[stream.id] = stream
        self._floods.opened()
        return True

    def release(self, stream: BackendStream, *, complete: bool) -> None:
        self._users.discard(stream)
        if self.streams.pop(stream.id, None) is not None and not complete:
            self.write(frames.rst_stream(stream.id, ErrorCode.CANCEL))
        if not self._users:
            self.idle_since = self._loop.time()
            if not self.open:
                self.transport.close()

    def write(self, data: bytes) -> None:
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        """Requests under way are answered all the same."""
        self._retired = True
        if not self._users:
            self.transport.close()

    # Frames

    def spend(self) -> None:
        if not self._floods.spend(self._loop.time()):
            raise wrong("too many frames that say nothing", ErrorCode.ENHANCE_YOUR_CALM)

    def spend_on_answer(self) -> None:
        if not self._floods.spend_on_answer(self._loop.time()):
            raise wrong("too many frames that say nothing", ErrorCode.ENHANCE_YOUR_CALM)

    def on_settings(self, frame: Frame) -> None:
        if frame.flags & frames.ACK:
            return
        self.spend()
        for name, value in frames.read_settings(frame.payload).items():
            self._apply(name, value)
        self.write(frames.SETTINGS_ACK)
        self._flush_all()

    def _apply(self, name: int, value: int) -> None:
        if name == Setting.MAX_CONCURRENT_STREAMS:
            self._most = value
        elif name == Setting.MAX_FRAME_SIZE:
            if not frames.DEFAULT_FRAME_SIZE <= value <= frames.MAX_FRAME_SIZE:
                raise wrong("the frame size is out of range")
            self.peer_frame_size = value
        elif name == Setting.INITIAL_WINDOW_SIZE:
            if value > frames.MAX_WINDOW:
                raise wrong("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
            for stream in self.streams.values():
                stream.send_window += value - self._initial_window
            self._initial_window = value

    def sent(self, size: int) -> None:
        """DATA was sent: the server may grant new credit for it."""
        self.send_window -= size
        self._floods.sent += size

    def on_window_update(self, frame: Frame) -> None:
        increment = frames.read_long(sized(frame, 4))
        self.spend_on_answer()
        if not frame.stream:
            self.send_window += increment
            if not increment or self.send_window > frames.MAX_WINDOW:
                raise wrong("a window grows by nothing or too much", ErrorCode.FLOW_CONTROL_ERROR)
            self._flush_all()
        elif (stream := self.streams.get(frame.stream)) is not None:
            stream.send_window += increment
            if not increment or stream.send_window > frames.MAX_WINDOW:
                raise StreamFailure(ErrorCode.FLOW_CONTROL_ERROR, "a window grows by nothing or too much")
            stream.flush()

    def _flush_all(self) -> None:
        for stream in tuple(self.streams.values()):
            stream.flush()

    def on_ping(self, frame: Frame) -> None:
        if not frame.flags & frames.ACK:
            self.spend()
            self.write(frames.ping_ack(sized(frame, 8)))

    def on_goaway(self, frame: Frame) -> None:
        if len(frame.payload) < 8:
            raise wrong("a frame has the wrong size", ErrorCode.FRAME_SIZE_ERROR)
        self._leaving = True
        last, _ = frames.read_goaway(frame.payload)
        for stream_id in [each for each in self.streams if each > last]:
            self.streams.pop(stream_id).break_off("http2: the server is shutting down", unprocessed=True)
        if not self._users:
            self.transport.close()

    # Ending

    def _look(self) -> None:
        """Time has passed: a server that was asked for a sign of life has given one, or is gone."""
        if self._asked and not self.heard:
            self.fail("http2: client connection lost")
            return
        self._asked = not self.heard and bool(self._users)
        if self._asked:
            self.write(frames.ping(b"are you?"))
        self.heard = False
        self._watch = self._loop.call_later(_SIGN_OF_LIFE if self._asked else _QUIET, self._look)

    def fail(self, why: str) -> None:
        self._leaving = True
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            stream.break_off(why)
        self.drained.set()
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self.fail(broken_connection(exc))

    def pause_writing(self) -> None:
        self.drained.clear()

    def resume_writing(self) -> None:
        self.drained.set()


def sized(frame: Frame, size: int) -> bytes:
    if len(frame.payload) != size:
        raise wrong("a frame has the wrong size", ErrorCode.FRAME_SIZE_ERROR)
    return frame.payload

"""An HTTP/2 client connection for concurrent requests.

Guarantees, beyond those of the dispatcher: per-stream windows keep a slow reader from blocking other streams. Requests
that the server reports as unprocessed fail as `unprocessed`. Silent connections are checked with a ping.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, cast

from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.control import connection_error
from pilothouse.apiserver.http2.dispatcher import FrameDispatcher
from pilothouse.apiserver.http2.frames import ConnectionFailure, ErrorCode, Field, Setting
from pilothouse.apiserver.http2.reader import Frame, FrameReader
from pilothouse.apiserver.offload import TURN_BYTES
from pilothouse.apiserver.outbound.connection import INPUT
from pilothouse.apiserver.outbound.failures import SERVER_SHUTTING_DOWN, broken_connection
from pilothouse.apiserver.outbound.http2_stream import STREAM_WINDOW, BackendStream

_RECEIVE_WINDOW: Final = 1 << 30
_FRAME_SIZE: Final = 128 << 10
_HEADER_BYTES: Final = 1 << 20
_HEADER_TIMEOUT: Final = 30.0
_STREAMS: Final = 100  # until the server's SETTINGS
_QUIET: Final = 30.0
_SIGN_OF_LIFE: Final = 15.0


class Http2BackendConnection(FrameDispatcher[BackendStream], asyncio.BufferedProtocol):
    peer = "server"
    _users: set[BackendStream]  # handed out and not released

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        super().__init__(
            FrameReader(greeted=True, frame_size=_FRAME_SIZE),
            header_bytes=_HEADER_BYTES,
            header_timeout=_HEADER_TIMEOUT,
            receive_window=_RECEIVE_WINDOW,
        )
        self._users = set()
        self._unhandled: Iterator[Frame] | None = None  # unhandled frames; reading is paused meanwhile
        self.highest = -1  # the first stream is 1
        self._most = _STREAMS
        self._retired = False  # no new streams
        self._heard, self._asked = True, False
        self._watch: asyncio.TimerHandle | None = None
        self.drained = asyncio.Event()
        self.drained.set()
        self.made = self.idle_since = loop.time()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's transports are not subclasses of asyncio's
        announced = {
            Setting.ENABLE_PUSH: 0,
            Setting.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            Setting.MAX_FRAME_SIZE: _FRAME_SIZE,
            Setting.MAX_HEADER_LIST_SIZE: _HEADER_BYTES,
        }
        grown = frames.window_update(0, _RECEIVE_WINDOW - frames.DEFAULT_WINDOW)
        self.transport.write(frames.PREFACE + frames.settings(announced) + grown)
        self._watch = self._loop.call_later(_QUIET, self._check_liveness)

    def now(self) -> float:
        return self._loop.time()

    # Streams

    @property
    def open(self) -> bool:
        return not self._retired and self._can_begin

    @property
    def _can_begin(self) -> bool:
        return not self.leaving and not self.transport.is_closing() and self.highest + 2 < frames.MAX_STREAM_ID

    @property
    def available(self) -> bool:
        return len(self._users) < self._most and self.open

    @property
    def idle(self) -> bool:
        return not self._users

    def stream(self) -> BackendStream:
        """Return a stream for a request; the caller must close it."""
        stream = BackendStream(self, self._loop)
        stream.reused = self.highest > 0
        self._users.add(stream)
        return stream

    def begin(self, stream: BackendStream) -> bool:
        """Assign the stream's id. Returns False at the server's stream limit."""
        if not self._can_begin:
            return False
        self.highest += 2
        stream.id, stream.send_window = self.highest, self.initial_window
        self.opened(stream)
        return True

    def release(self, stream: BackendStream, *, complete: bool) -> None:
        self._users.discard(stream)
        self.waiting.discard(stream)
        if self.streams.pop(stream.id, None) is not None and not complete:
            self.write(frames.rst_stream(stream.id, ErrorCode.CANCEL))
        if not self._users:
            self.idle_since = self._loop.time()
            if not self.open:
                self.transport.close()

    # Reading and writing

    def get_buffer(self, sizehint: int) -> memoryview:
        return INPUT.view

    def buffer_updated(self, nbytes: int) -> None:
        self._heard = True
        self.receive(bytes(INPUT.view[:nbytes]))

    def handle(self, arrived: Iterable[Frame]) -> None:
        if self._unhandled is not None:
            self._unhandled = chain(self._unhandled, arrived)
        elif not self._take_turn(waiting := iter(arrived)):
            self._unhandled = waiting
            self.transport.pause_reading()
            self._loop.call_soon(self._go_on)

    def _take_turn(self, waiting: Iterator[Frame]) -> bool:
        """Handle TURN_BYTES of frames; return False if frames may be left. Raises ConnectionFailure.

        DATA payloads are not inspected, so only their headers count.
        """
        cost = 0
        for frame in waiting:
            self.dispatch(frame)
            cost += frames.HEADER_SIZE if frame.kind == frames.DATA else frames.HEADER_SIZE + len(frame.payload)
            if cost >= TURN_BYTES:
                return False
        return True

    def _go_on(self) -> None:
        waiting = self._unhandled
        try:
            if waiting is not None and not self.over and not self._take_turn(waiting):
                self._loop.call_soon(self._go_on)
                return
        except ConnectionFailure as failure:
            self.fail(failure)
        self._unhandled = None
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def pause_writing(self) -> None:
        self.drained.clear()

    def resume_writing(self) -> None:
        self.drained.set()

    # Frames of servers only

    def on_head(self, stream_id: int, fields: list[Field] | None, *, end_stream: bool) -> None:
        if (stream := self.streams.get(stream_id)) is None:
            raise connection_error("a frame is for a stream that was not opened")
        stream.receive_head(fields, end_stream=end_stream)
        if end_stream:
            self.end(stream)

    def apply(self, name: int, value: int) -> None:
        if name == Setting.MAX_CONCURRENT_STREAMS:
            self._most = value
        else:
            super().apply(name, value)

    def peer_leaves(self, last: int) -> None:
        for stream_id in [each for each in self.streams if each > last]:
            self.streams.pop(stream_id).break_off(SERVER_SHUTTING_DOWN, unprocessed=True)
        if not self._users:
            self.transport.close()

    # Ending

    def _check_liveness(self) -> None:
        """Ping a silent server, and close the connection if the last ping is unanswered."""
        if (self._asked and not self._heard) or self.is_late(self.now()):
            self._break_off("http2: client connection lost")
            return
        self._asked = not self._heard and bool(self._users)
        if self._asked:
            self.write(frames.ping(b"are you?"))
        self._heard = False
        self._watch = self._loop.call_later(_SIGN_OF_LIFE if self._asked else _QUIET, self._check_liveness)

    def close(self) -> None:
        """Retire the connection; requests in progress complete."""
        self._retired = True
        if not self._users:
            self.transport.close()

    def fail(self, failure: ConnectionFailure) -> None:
        self.write(frames.goaway(0, failure.code, str(failure).encode()))
        self._break_off(f"http2: {failure}")

    def _break_off(self, reason: str) -> None:
        self.leaving = self.over = True
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            stream.break_off(reason)
        self.drained.set()
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._unhandled is not None:  # frames received before the loss
            self._loop.call_soon(self.connection_lost, exc)
            return
        if self._watch is not None:
            self._watch.cancel()
        self._break_off(broken_connection(exc))

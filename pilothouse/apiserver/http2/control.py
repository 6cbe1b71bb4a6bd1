"""Connection-level HTTP/2 for both roles: settings, windows, pings and flood protection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, TypeVar

from pilothouse.apiserver.http2 import frames
from pilothouse.apiserver.http2.frames import ConnectionFailure, ErrorCode, Setting, StreamFailure
from pilothouse.apiserver.http2.reader import FloodBudget, Frame


class Stream(Protocol):
    """The local end of a request and its response, implemented by serving and outbound."""

    id: int
    send_window: int
    receive_window: int
    expected: int | None
    """Remaining declared length of the body."""

    @property
    def headed(self) -> bool:
        """Return whether the head was received; a further field list is a trailer."""

    @property
    def ended(self) -> bool:
        """Return whether the peer's message is complete or absent."""

    def receive_data(self, data: bytes, padding: int) -> None:
        """Receive body bytes. Raises StreamFailure."""

    def receive_end(self) -> None:
        """Handle the end of the message."""

    def receive_reset(self, code: int) -> None:
        """Handle RST_STREAM."""

    def credit(self) -> None:
        """Handle a grown window."""

    def fail(self, failure: StreamFailure) -> None:
        """Reset the stream after a protocol violation."""


S = TypeVar("S", bound=Stream)


def connection_error(reason: str, code: ErrorCode = ErrorCode.PROTOCOL_ERROR) -> ConnectionFailure:
    return ConnectionFailure(code, reason)


def _payload_of_size(frame: Frame, size: int) -> bytes:
    if len(frame.payload) != size:
        raise connection_error("a frame has the wrong size", ErrorCode.FRAME_SIZE_ERROR)
    return frame.payload


def _check_streamless(frame: Frame) -> None:
    if frame.stream:
        raise connection_error("a frame for the connection is on a stream")


class Control(ABC, Generic[S]):
    peer: ClassVar[str]
    """The peer's role: client or server."""

    streams: dict[int, S]  # open in at least one direction
    waiting: set[S]  # streams waiting for credit

    def __init__(self) -> None:
        self.streams, self.waiting = {}, set()
        self.highest = 0  # highest opened stream id
        self.leaving = False  # GOAWAY sent or received: no new streams
        self.send_window = frames.DEFAULT_WINDOW
        self.initial_window = frames.DEFAULT_WINDOW  # send window of new streams
        self.frame_size = frames.DEFAULT_FRAME_SIZE  # the peer's maximum frame size
        self.settled = False  # the peer's first SETTINGS received
        self._acknowledged = False  # the peer acknowledged our SETTINGS
        self._floods = FloodBudget(self.now())

    @abstractmethod
    def now(self) -> float:
        """Return the time of the clock that deadlines use."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write whole frames, possibly deferred."""

    @abstractmethod
    def peer_leaves(self, last: int) -> None:
        """Handle the peer's GOAWAY; streams above `last` were not processed."""

    # Streams

    def opened(self, stream: S) -> None:
        self._floods.opened()
        self.streams[stream.id] = stream

    def check_opened(self, stream_id: int) -> None:
        """Raise for a frame on an unopened stream. All stream ids are odd, because push is disabled. After our GOAWAY
        the peer may still open streams."""
        if not stream_id & 1 or (stream_id > self.highest and not self.leaving):
            raise connection_error("a frame is for a stream that was not opened")

    def sent(self, size: int) -> None:
        """Account for sent DATA, for which the peer may grant credit."""
        self.send_window -= size
        self._floods.sent += size

    def fail_stream(self, stream_id: int, failure: StreamFailure) -> None:
        if (stream := self.streams.pop(stream_id, None)) is not None:
            stream.fail(failure)
        else:
            self.write(frames.rst_stream(stream_id, failure.code))

    # Floods

    def spend(self) -> None:
        """Charge a frame that costs the peer nothing. Raises ConnectionFailure on a flood."""
        if not self._floods.spend(self.now()):
            raise connection_error("too many frames that say nothing", ErrorCode.ENHANCE_YOUR_CALM)

    def spend_on_answer(self) -> None:
        """Charge a frame that costs the peer nothing, unless caused by data we sent. Raises ConnectionFailure on a
        flood."""
        if not self._floods.spend_on_answer(self.now()):
            raise connection_error("too many frames that say nothing", ErrorCode.ENHANCE_YOUR_CALM)

    # Frames

    def on_settings(self, frame: Frame) -> None:
        _check_streamless(frame)
        if frame.flags & frames.ACK:
            _payload_of_size(frame, 0)
            # SETTINGS are sent once, so one acknowledgement is valid.
            if self._acknowledged:
                raise connection_error("settings are acknowledged that were not sent")
            self._acknowledged = True
            return
        if self.settled:
            self.spend()
        self.settled = True
        for name, value in frames.read_settings(frame.payload).items():
            self.apply(name, value)
        self.write(frames.SETTINGS_ACK)

    def apply(self, name: int, value: int) -> None:
        """Apply a setting of the peer. Raises ConnectionFailure."""
        if name == Setting.INITIAL_WINDOW_SIZE:
            if value > frames.MAX_WINDOW:
                raise connection_error("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
            # Resized send windows may be negative: credit must refill them first.
            change = value - self.initial_window
            for stream in self.streams.values():
                stream.send_window += change
                if stream.send_window > frames.MAX_WINDOW:
                    raise connection_error("a window is too large", ErrorCode.FLOW_CONTROL_ERROR)
            self._credit_all()
            self.initial_window = value
        elif name == Setting.MAX_FRAME_SIZE:
            if not frames.DEFAULT_FRAME_SIZE <= value <= frames.MAX_FRAME_SIZE:
                raise connection_error("the frame size is out of range")
            self.frame_size = value
        elif name == Setting.ENABLE_PUSH and value > 1:
            raise connection_error("ENABLE_PUSH is neither 0 nor 1")

    def _credit_all(self) -> None:
        for stream in tuple(self.waiting):
            stream.credit()

    def on_window_update(self, frame: Frame) -> None:
        increment = frames.read_long(_payload_of_size(frame, 4))
        self.spend_on_answer()
        if not frame.stream:
            self.send_window += increment
            if not increment or self.send_window > frames.MAX_WINDOW:
                raise connection_error("a window grows by nothing or too much", ErrorCode.FLOW_CONTROL_ERROR)
            self._credit_all()
            return
        self.check_opened(frame.stream)
        if (stream := self.streams.get(frame.stream)) is not None:
            stream.send_window += increment
            if not increment or stream.send_window > frames.MAX_WINDOW:
                raise StreamFailure(ErrorCode.FLOW_CONTROL_ERROR, "a window grows by nothing or too much")
            stream.credit()

    def on_ping(self, frame: Frame) -> None:
        payload = _payload_of_size(frame, 8)
        _check_streamless(frame)
        self.spend()
        if not frame.flags & frames.ACK:
            self.write(frames.ping_ack(payload))

    def on_rst_stream(self, frame: Frame) -> None:
        code = frames.read_long(_payload_of_size(frame, 4))
        self.check_opened(frame.stream)
        self.spend()
        if (stream := self.streams.pop(frame.stream, None)) is not None:
            stream.receive_reset(code)

    def on_priority(self, frame: Frame) -> None:
        _payload_of_size(frame, 5)
        self.spend()

    def on_push_promise(self, frame: Frame) -> None:
        """Reject push: forbidden for clients, and disabled for servers."""
        raise connection_error(f"the {self.peer} pushes")

    def on_goaway(self, frame: Frame) -> None:
        _check_streamless(frame)
        self.spend()
        last = frames.read_goaway(frame.payload)
        self.leaving = True
        self.peer_leaves(last)

"""Frame reader: returns complete frames, and buffers at most one incomplete frame. `FloodBudget` bounds free frames."""

from __future__ import annotations

from typing import Final, NamedTuple

from pilothouse.apiserver.http2.frames import (
    DEFAULT_FRAME_SIZE,
    FRAME_HEADER,
    HEADER_SIZE,
    MAX_STREAM_ID,
    PREFACE,
    ConnectionFailure,
    ErrorCode,
)


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


class FrameReader:
    __slots__ = ("_buffer", "_frame_size", "_greeted", "_needed")

    def __init__(self, *, greeted: bool = False, frame_size: int = DEFAULT_FRAME_SIZE) -> None:
        """`greeted`: no preface is expected, as from a server. `frame_size`: the announced maximum."""
        self._buffer = bytearray()
        self._needed = HEADER_SIZE if greeted else len(PREFACE)  # buffered bytes required for progress
        self._greeted = greeted
        self._frame_size = frame_size

    def feed(self, data: bytes) -> list[Frame]:
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return []
            data = bytes(self._buffer)
            self._buffer.clear()
        if self._greeted:
            return self._frames(data, 0)
        if len(data) < len(PREFACE) and PREFACE.startswith(data):
            self._buffer += data
            return []
        if not data.startswith(PREFACE):
            raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "the connection preface is wrong")
        self._greeted = True
        return self._frames(data, len(PREFACE))

    def _frames(self, data: bytes, at: int) -> list[Frame]:
        frames: list[Frame] = []
        end, needed, unpack = len(data), HEADER_SIZE, FRAME_HEADER.unpack_from
        while end - at >= HEADER_SIZE:
            high, low, kind, flags, stream = unpack(data, at)
            length = high << 8 | low
            if length > self._frame_size:
                raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, "a frame is too large")
            start = at + HEADER_SIZE
            if end - start < length:
                needed = HEADER_SIZE + length
                break
            at = start + length
            frames.append(Frame(kind, flags, stream & MAX_STREAM_ID, data[start:at]))
        if at < end:
            self._buffer += data[at:]
            self._needed = needed
        return frames


BURST: Final = 1000
PER_SECOND: Final = 100
WORTH_A_FRAME: Final = 256
"""Bytes of DATA per free frame: the remaining body of a refused request is no flood, unless its frames are tiny."""
_WORTH_AN_UPDATE: Final = 64
"""Bytes of DATA per free window update. Some peers grant credit twice per watch event."""


class FloodBudget:
    """A budget for frames that cost the peer nothing; an exhausted budget indicates a flood (CVE-2023-44487 and
    related).

    Charged: resets, pings, settings, priorities, unknown and empty frames, frames for closed streams, malformed or
    refused messages, excess credit. The budget starts full and refills over time.
    """

    __slots__ = ("_left", "_since", "sent")

    def __init__(self, now: float) -> None:
        self._left = float(BURST)
        self._since = now
        self.sent = 0  # sent bytes that entitle the peer to free frames

    def opened(self) -> None:
        """Grant free frames for a new stream: its own credit, and frames that arrive after its end."""
        self.sent += 2 * _WORTH_AN_UPDATE

    def spend(self, now: float) -> bool:
        """Charge a frame; return False for an exhausted budget."""
        if now > self._since:
            self._left = min(BURST, self._left + (now - self._since) * PER_SECOND)
            self._since = now
        self._left -= 1
        return self._left >= 0

    def spend_on_answer(self, now: float) -> bool:
        """Like `spend`, for frames that may respond to sent data."""
        if self.sent < _WORTH_AN_UPDATE:
            return self.spend(now)
        self.sent -= _WORTH_AN_UPDATE
        return True

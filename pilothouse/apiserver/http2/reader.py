"""Frame reader: returns complete frames, and buffers at most one incomplete frame."""

from __future__ import annotations

from typing import NamedTuple

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
        found: list[Frame] = []
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
            found.append(Frame(kind, flags, stream & MAX_STREAM_ID, data[start:at]))
        if at < end:
            self._buffer += data[at:]
            self._needed = needed
        return found

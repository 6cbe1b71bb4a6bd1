"""A field block that comes in several frames, bounded in size and in number (CVE-2024-27316)."""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.serving.http2.frames import DEFAULT_FRAME_SIZE, ConnectionFailure, ErrorCode

_SPARE_FRAMES: Final = 16


class FieldBlock:
    __slots__ = ("_frames", "_limit", "data", "deadline", "end_stream", "stream_id")

    def __init__(self, stream_id: int, *, end_stream: bool, limit: int, deadline: float) -> None:
        self.stream_id = stream_id
        self.end_stream = end_stream
        self.deadline = deadline
        self.data = bytearray()
        self._limit = limit
        self._frames = limit // DEFAULT_FRAME_SIZE + _SPARE_FRAMES

    def add(self, fragment: bytes) -> None:
        self.data += fragment
        self._frames -= 1
        if len(self.data) > self._limit or self._frames < 0:
            raise ConnectionFailure(ErrorCode.ENHANCE_YOUR_CALM, "a field block is too large")

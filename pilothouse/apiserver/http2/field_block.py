"""Field blocks split over several frames, bounded in size and number (CVE-2024-27316).

Each frame is decoded on arrival, so its cost is proportional to its size.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.http2.fields import Field
from pilothouse.apiserver.http2.frames import DEFAULT_FRAME_SIZE, ConnectionFailure, ErrorCode
from pilothouse.apiserver.http2.hpack.decoder import Decoder
from pilothouse.apiserver.http2.hpack.integers import CutOff

_SPARE_FRAMES: Final = 16


class FieldBlock:
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

"""Watch streams in protobuf: each event is a WatchEvent message after its length in four bytes, big-endian.

The object within an event has an envelope of its own, since a stream may carry several kinds (bookmarks, Status).
"""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.protobuf.wire import TRUNCATED, ProtobufError, bytes_of, delimited, fields_of, text_of

_LENGTH = 4  # bytes
_TYPE, _OBJECT, _RAW = 0x0A, 0x12, 0x0A
MAX_FRAME = 16 * 1024 * 1024
"""The longest event that upstream's clients take."""


@dataclass(frozen=True, slots=True)
class WatchFrame:
    """One event: its type and its object, which `codec.decode` reads."""

    type: str
    object: bytes


def watch_event(event_type: str, enveloped: bytes) -> bytes:
    """One event, framed. `enveloped` is the object as `codec.encode` writes it."""
    message = delimited(b"\x0a", event_type.encode()) + delimited(b"\x12", delimited(b"\x0a", enveloped))
    return len(message).to_bytes(_LENGTH, "big") + message


class FrameDecoder:
    """Cuts a stream, fed in pieces of any size, into its events.

    feed(a piece)  → the events that it completes, in order
    close()        → ProtobufError if the stream ended within an event
    """

    def __init__(self, *, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._buffer = bytearray()  # begins where a frame begins

    def feed(self, piece: bytes) -> list[WatchFrame]:
        self._buffer += piece
        frames, start = [], 0
        while (end := self._frame_end(start)) is not None:
            frames.append(read_event(bytes(self._buffer[start + _LENGTH : end])))
            start = end
        del self._buffer[:start]
        return frames

    def close(self) -> None:
        if self._buffer:
            raise ProtobufError(TRUNCATED)

    def _frame_end(self, start: int) -> int | None:
        """Where the frame that begins at `start` ends; None while it is not whole."""
        body = start + _LENGTH
        if len(self._buffer) < body:
            return None
        size = int.from_bytes(self._buffer[start:body], "big")
        if size > self._limit:
            raise ProtobufError("object to decode was longer than maximum allowed size")
        return body + size if len(self._buffer) >= body + size else None


def read_event(message: bytes) -> WatchFrame:
    """A WatchEvent message without its length."""
    try:
        found = fields_of(message, _TYPE, _OBJECT)
        extension = fields_of(bytes_of(found, _OBJECT), _RAW)
    except IndexError as error:
        raise ProtobufError(TRUNCATED) from error
    return WatchFrame(text_of(found, _TYPE), bytes_of(extension, _RAW))

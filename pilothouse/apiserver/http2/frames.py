"""HTTP/2 messages: constants of RFC 9113, frame writers, and the field list rules of section 8."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, TypeAlias

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_SIZE: Final = 9
DEFAULT_WINDOW: Final = 65_535
DEFAULT_FRAME_SIZE: Final = 16_384
MAX_FRAME_SIZE: Final = (1 << 24) - 1
MAX_WINDOW: Final = (1 << 31) - 1
MAX_STREAM_ID: Final = (1 << 31) - 1

# Frame types.
DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

# Flags.
END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20

FRAME_HEADER: Final = Struct(">HBBBI")
"""Length (high 16 bits, low 8 bits), type, flags, stream."""

_PRIORITY_SIZE: Final = 5
_LONG: Final = Struct(">I")
_TWO_LONGS: Final = Struct(">II")
SETTING: Final = Struct(">HI")
_MOST_SETTINGS: Final = 100


class Setting(IntEnum):
    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ErrorCode(IntEnum):
    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class ConnectionFailure(Exception):
    """A connection error: GOAWAY with this code."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class StreamFailure(Exception):
    """A stream error: RST_STREAM with this code."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def frame_header(kind: int, flags: int, stream: int, length: int) -> bytes:
    return FRAME_HEADER.pack(length >> 8, length & 0xFF, kind, flags, stream)


def settings(values: dict[Setting, int]) -> bytes:
    payload = b"".join(SETTING.pack(name, value) for name, value in values.items())
    return frame_header(SETTINGS, 0, 0, len(payload)) + payload


SETTINGS_ACK: Final = frame_header(SETTINGS, ACK, 0, 0)


def ping(payload: bytes) -> bytes:
    return frame_header(PING, 0, 0, 8) + payload


def ping_ack(payload: bytes) -> bytes:
    return frame_header(PING, ACK, 0, 8) + payload


def window_update(stream: int, increment: int) -> bytes:
    return frame_header(WINDOW_UPDATE, 0, stream, 4) + _LONG.pack(increment)


def rst_stream(stream: int, code: int) -> bytes:
    return frame_header(RST_STREAM, 0, stream, 4) + _LONG.pack(code)


def goaway(last_stream: int, code: int, debug: bytes = b"") -> bytes:
    return frame_header(GOAWAY, 0, 0, 8 + len(debug)) + _TWO_LONGS.pack(last_stream, code) + debug


def read_long(payload: bytes) -> int:
    """Read a 31-bit number, ignoring the reserved bit."""
    value: int = _LONG.unpack_from(payload)[0]
    return value & MAX_STREAM_ID


def read_goaway(payload: bytes) -> int:
    """Return the last stream that the peer may have processed. Raises ConnectionFailure."""
    if len(payload) < _TWO_LONGS.size:
        raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, "a frame has the wrong size")
    return read_long(payload)


def read_settings(payload: bytes) -> dict[int, int]:
    """Parse SETTINGS. Raises ConnectionFailure for more than 100 or duplicate settings, like x/net/http2, because each
    may be expensive."""
    count, rest = divmod(len(payload), SETTING.size)
    if rest:
        raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, "a frame has the wrong size")
    values = dict(SETTING.iter_unpack(payload)) if count <= _MOST_SETTINGS else {}
    if len(values) != count:
        raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "too many settings, or one twice")
    return values


def header_frames(stream: int, block: bytes, *, end_stream: bool, frame_size: int) -> bytes:
    """Encode a field block as HEADERS, with CONTINUATION frames as needed."""
    flags = END_STREAM if end_stream else 0
    if len(block) <= frame_size:
        return frame_header(HEADERS, flags | END_HEADERS, stream, len(block)) + block
    pieces = [block[at : at + frame_size] for at in range(0, len(block), frame_size)]
    out = [frame_header(HEADERS, flags, stream, len(pieces[0])), pieces[0]]
    for piece in pieces[1:]:
        last = END_HEADERS if piece is pieces[-1] else 0
        out += (frame_header(CONTINUATION, last, stream, len(piece)), piece)
    return b"".join(out)


def data_frames(stream: int, data: memoryview, *, end_stream: bool, frame_size: int) -> bytes:
    """Encode body bytes as DATA frames, with a single copy."""
    out: list[bytes | memoryview] = []
    for at in range(0, len(data), frame_size):
        piece = data[at : at + frame_size]
        last = END_STREAM if end_stream and at + frame_size >= len(data) else 0
        out += (frame_header(DATA, last, stream, len(piece)), piece)
    return b"".join(out)


def field_fragment(flags: int, payload: bytes) -> bytes:
    """Return the field block fragment of a HEADERS frame, without padding and priority."""
    payload = unpadded(flags, payload)
    if not flags & WITH_PRIORITY:
        return payload
    if len(payload) < _PRIORITY_SIZE:
        raise ConnectionFailure(ErrorCode.FRAME_SIZE_ERROR, "a HEADERS frame is too short")
    return payload[_PRIORITY_SIZE:]


def unpadded(flags: int, payload: bytes) -> bytes:
    """Return the payload of a DATA or HEADERS frame without padding."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFailure(ErrorCode.PROTOCOL_ERROR, "padding is longer than the frame")
    return payload[1 : len(payload) - payload[0]]


Field: TypeAlias = tuple[bytes, bytes]

CONNECTION_FIELDS: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Connection-specific fields, forbidden in HTTP/2."""


def malformed(reason: str) -> StreamFailure:
    return StreamFailure(ErrorCode.PROTOCOL_ERROR, reason)


def content_length(value: bytes, known: int | None) -> int:
    """Parse a length. Raises StreamFailure for an invalid length, or a conflict with `known`."""
    if not value.isdigit() or len(value) > 18 or (known is not None and known != int(value)):
        raise malformed("the content length is no number")
    return int(value)


def check_complete(missing: int | None) -> None:
    """Raise StreamFailure if the body length differs from the declared length."""
    if missing:
        raise malformed("the body is not as long as was declared")


def check_trailers(fields: list[Field]) -> None:
    """Raise StreamFailure for pseudo-headers in trailers."""
    if any(name[0] == 58 for name, _ in fields):  # a colon
        raise malformed("a trailer is a pseudo-header")

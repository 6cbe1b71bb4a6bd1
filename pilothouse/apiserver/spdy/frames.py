"""SPDY/3.1 frames, and their encoding."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, TypeAlias

from pilothouse.apiserver.spdy.header_block import BadHeaderBlock, HeaderCompressor, HeaderDecompressor, StreamHeaders
from pilothouse.machinery.dataclass import dataclass

FRAME_HEADER: Final = Struct(">II")
"""Control bit with version and type, or stream id of a data frame; then flags and length."""
CONTROL: Final = 0x8000_0000
MAX_CONTROL_PAYLOAD: Final = 64 * 1024
MAX_DATA: Final = (1 << 24) - 1
FIN: Final = 0x01
_UNIDIRECTIONAL: Final = 0x02
_VERSION: Final = 3
_ID: Final = 0x7FFF_FFFF
_LONG: Final = Struct(">I")
_TWO_LONGS: Final = Struct(">II")
_SYN_STREAM: Final = Struct(">IIBB")
_SETTING_ID: Final = 0x00FF_FFFF


class ResetStatus(IntEnum):
    PROTOCOL_ERROR = 1
    INVALID_STREAM = 2
    REFUSED_STREAM = 3
    UNSUPPORTED_VERSION = 4
    CANCEL = 5
    INTERNAL_ERROR = 6
    FLOW_CONTROL_ERROR = 7


class GoAwayStatus(IntEnum):
    OK = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2


class SpdyError(Exception):
    """A protocol violation that ends the connection."""


@dataclass(frozen=True, slots=True)
class SynStream:
    """Opens a stream."""

    stream: int
    headers: StreamHeaders
    fin: bool = False
    unidirectional: bool = False
    associated: int = 0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class SynReply:
    """Accepts a stream."""

    stream: int
    headers: StreamHeaders
    fin: bool = False


@dataclass(frozen=True, slots=True)
class RstStream:
    stream: int
    status: int


@dataclass(frozen=True, slots=True)
class Settings:
    values: tuple[tuple[int, int, int], ...]
    """(flags, id, value) of each setting."""
    clear: bool = False


@dataclass(frozen=True, slots=True)
class Ping:
    id: int


@dataclass(frozen=True, slots=True)
class GoAway:
    last_stream: int
    status: int = GoAwayStatus.OK


@dataclass(frozen=True, slots=True)
class MoreHeaders:
    """HEADERS: further headers of an open stream."""

    stream: int
    headers: StreamHeaders
    fin: bool = False


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    """Ignored, as by kubelet and kubectl: back-pressure applies to the whole connection."""

    stream: int
    delta: int


@dataclass(frozen=True, slots=True)
class Data:
    stream: int
    data: bytes
    fin: bool = False


Frame: TypeAlias = SynStream | SynReply | RstStream | Settings | Ping | GoAway | MoreHeaders | WindowUpdate | Data


def encode(frame: Frame, compressor: HeaderCompressor) -> bytes:
    """Encode the frame. Frames with headers must be sent in the order of encoding."""
    match frame:
        case Data(stream, data, fin):
            return FRAME_HEADER.pack(stream, _flags(fin) | len(data)) + data
        case SynStream(stream, headers, fin, unidirectional, associated, priority):
            flags = _flags(fin) | (_UNIDIRECTIONAL << 24 if unidirectional else 0)
            head = _SYN_STREAM.pack(stream, associated, priority << 5, 0)
            return _control(1, head + compressor.compress(headers), flags)
        case SynReply(stream, headers, fin):
            return _control(2, _LONG.pack(stream) + compressor.compress(headers), _flags(fin))
        case RstStream(stream, status):
            return _control(3, _TWO_LONGS.pack(stream, status))
        case Settings(values, clear):
            pairs = (_TWO_LONGS.pack(flags << 24 | id, value) for flags, id, value in values)
            return _control(4, _LONG.pack(len(values)) + b"".join(pairs), _flags(clear))
        case Ping(id):
            return _control(6, _LONG.pack(id))
        case GoAway(last_stream, status):
            return _control(7, _TWO_LONGS.pack(last_stream, status))
        case MoreHeaders(stream, headers, fin):
            return _control(8, _LONG.pack(stream) + compressor.compress(headers), _flags(fin))
        case WindowUpdate(stream, delta):
            return _control(9, _TWO_LONGS.pack(stream, delta))


def _flags(fin: bool) -> int:
    return FIN << 24 if fin else 0


def _control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return FRAME_HEADER.pack(CONTROL | _VERSION << 16 | kind, flags | len(payload)) + payload


def decode_control(first_word: int, flags: int, payload: bytes, decompressor: HeaderDecompressor) -> Frame:
    """Decode a control frame. Raises SpdyError."""
    if first_word >> 16 & 0x7FFF != _VERSION:
        raise SpdyError(f"version {first_word >> 16 & 0x7FFF} is not spoken here")
    try:
        return _decoded(first_word & 0xFFFF, flags, payload, decompressor)
    except BadHeaderBlock as error:
        raise SpdyError(f"invalid headers: {error}") from None


def _decoded(kind: int, flags: int, payload: bytes, decompressor: HeaderDecompressor) -> Frame:
    fin = bool(flags & FIN)
    match kind:
        case 1 if len(payload) >= _SYN_STREAM.size:
            stream, associated, priority, _ = _SYN_STREAM.unpack_from(payload)
            headers = decompressor.decompress(payload[_SYN_STREAM.size :])
            one_way = bool(flags & _UNIDIRECTIONAL)
            return SynStream(_stream(stream), headers, fin, one_way, associated & _ID, priority >> 5)
        case 2 | 8 if len(payload) >= _LONG.size:
            stream = _stream(_LONG.unpack_from(payload)[0])
            headers = decompressor.decompress(payload[_LONG.size :])
            return SynReply(stream, headers, fin) if kind == 2 else MoreHeaders(stream, headers, fin)
        case 3 if len(payload) == _TWO_LONGS.size:
            stream, status = _TWO_LONGS.unpack(payload)
            return RstStream(_stream(stream), status)
        case 4:
            count = _LONG.unpack_from(payload)[0] if len(payload) >= _LONG.size else -1
            if len(payload) != _LONG.size + count * _TWO_LONGS.size:
                raise SpdyError("invalid settings")
            pairs = _TWO_LONGS.iter_unpack(payload[_LONG.size :])
            return Settings(tuple((key >> 24, key & _SETTING_ID, value) for key, value in pairs), fin)
        case 6 if len(payload) == _LONG.size:
            return Ping(_LONG.unpack(payload)[0])
        case 7 if len(payload) == _TWO_LONGS.size:
            last, status = _TWO_LONGS.unpack(payload)
            return GoAway(last & _ID, status)
        case 9 if len(payload) == _TWO_LONGS.size:
            stream, delta = _TWO_LONGS.unpack(payload)
            return WindowUpdate(stream & _ID, delta & _ID)
    raise SpdyError(f"invalid control frame of type {kind} with {len(payload)} bytes")


def _stream(stream: int) -> int:
    if not stream & _ID:
        raise SpdyError("stream id zero is disallowed")
    return stream & _ID

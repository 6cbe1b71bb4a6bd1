"""Integers of RFC 7541, section 5.1: a prefix of some bits, and continuation bytes as needed."""

from __future__ import annotations

from pilothouse.apiserver.http2.frames import ConnectionFailure, ErrorCode


class CutOff(ConnectionFailure):
    """The block ends inside a field."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COMPRESSION_ERROR, "a field is cut off")


def read_integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """Return the number with prefix block[at] & mask, and its end. Raises CutOff."""
    value = block[at] & mask
    at += 1
    if value < mask:
        return value, at
    for shift in (0, 7, 14, 21):
        if at >= len(block):
            raise CutOff
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ConnectionFailure(ErrorCode.COMPRESSION_ERROR, "a number is too large")


def write_integer(value: int, mask: int, pattern: int) -> bytes:
    if value < mask:
        return bytes((pattern | value,))
    out = bytearray((pattern | mask,))
    value -= mask
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

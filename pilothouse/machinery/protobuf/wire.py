"""Protobuf's wire format: varints, tags, and the skipping of fields that nobody knows.

Positions are not checked against the end of the enclosing message one by one: whoever loops over a message's fields
checks that it stopped exactly at the end, and reading past the buffer is an IndexError that the codec translates.
Readers give back (value, next position) pairs, for a frozen result object would double the cost of a field.
"""

from __future__ import annotations

from pilothouse.machinery.protobuf.errors import ProtobufError

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
TRUNCATED = "unexpected EOF"
MAX_DEPTH = 200
"""How deep messages may nest. Upstream sets no bound; the deepest schemas in use stay below 100."""

_MASK = (1 << 64) - 1
SMALL = tuple(bytes((number,)) for number in range(128))
"""The varints of one byte."""


def varint(number: int) -> bytes:
    """Negative numbers are written as two's complement of 64 bits."""
    if 0 <= number < 128:
        return SMALL[number]
    number &= _MASK
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def delimited(head: bytes, body: bytes) -> bytes:
    """A field of bytes: its tag, its length, its content."""
    size = len(body)
    return head + (SMALL[size] if size < 128 else varint(size)) + body


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """An unsigned 64-bit number. More than ten bytes are an overflow; bits beyond 64 are dropped, as gogo does."""
    number = shift = 0
    while shift < 64:
        byte = data[pos]
        pos += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & _MASK, pos
        shift += 7
    raise ProtobufError("proto: integer overflow")


def read_size(data: bytes, pos: int) -> tuple[int, int]:
    size = data[pos]
    return (size, pos + 1) if size < 128 else read_varint(data, pos)


def signed(number: int, bits: int = 64) -> int:
    """The two's complement reading of the lowest `bits` bits."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def skip(data: bytes, pos: int, key: int, depth: int = 0) -> int:
    """The position after the value of a field whose tag `key` was just read."""
    if key >> 3 == 0:
        raise ProtobufError(f"proto: illegal tag {key >> 3} (wire type {key & 7})")
    match key & 7:
        case 0:
            return read_varint(data, pos)[1]
        case 1:
            return pos + 8
        case 2:
            size, pos = read_size(data, pos)
            return pos + size
        case 3:
            return _skip_group(data, pos, depth + 1)
        case 5:
            return pos + 4
        case wire_type:
            raise ProtobufError(f"proto: illegal wireType {wire_type}")


def _skip_group(data: bytes, pos: int, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise ProtobufError("proto: message nested too deeply")
    while True:
        key, pos = read_varint(data, pos)
        if key & 7 == END_GROUP:
            return pos
        pos = skip(data, pos, key, depth)

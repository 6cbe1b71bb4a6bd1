"""Protobuf's wire format: varints, tags, and skipping of unknown fields.

Readers do not check every position against the end of the message: the loop over a message's fields checks that it
stopped exactly at the end, and an IndexError past the buffer is translated by the codec. Readers return (value, next
position) tuples, because a frozen result object would double the cost of a field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class ProtobufError(Exception):
    """Bytes are not protobuf of the expected kind, or an object has no protobuf form."""


VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)
TRUNCATED = "unexpected EOF"
MAX_DEPTH = 200
"""Nesting limit of messages. Upstream has no limit; real schemas stay below 100."""

_MASK = (1 << 64) - 1
SMALL = tuple(bytes((number,)) for number in range(128))
"""One-byte varints."""


def varint(number: int) -> bytes:
    """Encode a varint; negative numbers as 64-bit two's complement."""
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
    """Encode a length-delimited field: tag, length, content."""
    size = len(body)
    return head + (SMALL[size] if size < 128 else varint(size)) + body


def read_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Read an unsigned 64-bit number. More than ten bytes overflow; bits beyond 64 are dropped, as in gogo."""
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
    """Interpret the lowest `bits` bits as two's complement."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def skip(data: bytes, pos: int, key: int, depth: int = 0) -> int:
    """Return the position after the value of a field; `key` is its tag."""
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


Raw: TypeAlias = int | bytes


def scan(data: bytes, pos: int, end: int, known: tuple[int, ...]) -> list[tuple[int, Raw]]:
    """Return (tag, value) pairs of data[pos:end] for known tags, which must be varints or bytes."""
    fields: list[tuple[int, Raw]] = []
    while pos < end:
        key, pos = read_size(data, pos)
        if key not in known:
            refuse_wire_type(key, known)
            pos = skip(data, pos, key)
        elif key & 7 == BYTES:
            size, pos = read_size(data, pos)
            fields.append((key, data[pos : pos + size]))
            pos += size
        else:
            number, pos = read_varint(data, pos)
            fields.append((key, number))
    if pos != end:
        raise ProtobufError(TRUNCATED)
    return fields


def fields_of(body: bytes, *known: int) -> dict[int, Raw]:
    """Return the fields of a whole message by tag; the last occurrence wins."""
    return dict(scan(body, 0, len(body), known))


def refuse_wire_type(key: int, known: Iterable[int]) -> None:
    """Raise ProtobufError for a known field with the wrong wire type; unknown fields are skipped."""
    if any(key >> 3 == other >> 3 for other in known):
        raise ProtobufError(f"proto: wrong wireType = {key & 7} for field {key >> 3}")


def int_of(fields: Mapping[int, Raw], key: int, *, bits: int = 64) -> int:
    number = fields.get(key, 0)
    assert isinstance(number, int)
    return signed(number, bits)


def bytes_of(fields: Mapping[int, Raw], key: int) -> bytes:
    raw = fields.get(key, b"")
    assert isinstance(raw, bytes)
    return raw


def text_of(fields: Mapping[int, Raw], key: int, *, missing: str = "") -> str:
    return bytes_of(fields, key).decode("utf-8", "replace") if key in fields else missing


def texts_of(fields: Iterable[tuple[int, Raw]], key: int) -> list[str]:
    """Return all occurrences of a repeated string."""
    return [raw.decode("utf-8", "replace") for at, raw in fields if at == key and isinstance(raw, bytes)]

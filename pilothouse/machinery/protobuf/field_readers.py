"""Readers of fields without generated source: maps, bytes, doubles and repeated scalars.

Each reader takes the position after the field's tag, stores the value in the JSON object, and returns the next
position.
"""

from __future__ import annotations

import math
import struct
from binascii import b2a_base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.protobuf.wire import (
    BYTES,
    FIXED64,
    TRUNCATED,
    VARINT,
    ProtobufError,
    read_size,
    read_varint,
    signed,
    skip,
)
from pilothouse.machinery.wire_facts import SCALARS, FieldFacts, Label

if TYPE_CHECKING:
    from pilothouse.machinery.objects import Json
    from pilothouse.machinery.protobuf.message import Lookup

ReadField: TypeAlias = "Callable[[bytes, int, Json, int], int]"
Decode: TypeAlias = "Callable[[bytes, int], tuple[Any, int]]"
"""Reads one scalar: (value, next position)."""


def wire_types(field: FieldFacts) -> tuple[int, ...]:
    """Return the accepted wire types of the field. Repeated numbers may be packed."""
    single = _SCALARS[field.type][0] if field.type in SCALARS and field.label is not Label.MAP else BYTES
    return (single, BYTES) if field.label is Label.REPEATED and single != BYTES else (single,)


def field_readers(field: FieldFacts, lookup: Lookup) -> dict[int, ReadField]:
    """Return the field's readers by wire type; empty for messages, which have generated source."""
    if field.label is Label.MAP:
        return {BYTES: _map(field, lookup)}
    if field.type not in SCALARS:
        return {}
    wire_type, decode = _SCALARS[field.type]
    if field.label is Label.REPEATED:
        name = field.name

        def read(data: bytes, pos: int, out: Json, depth: int) -> int:
            value, pos = decode(data, pos)
            if out.get(name) is None:
                out[name] = []
            out[name].append(value)
            return pos

        return {wire_type: read} | ({} if wire_type == BYTES else {BYTES: _packed(field.name, decode)})
    return {wire_type: _scalar(field, decode)}


def _map(field: FieldFacts, lookup: Lookup) -> ReadField:
    name = field.name
    read_entry = _entry_reader(_map_value(field.type, lookup))

    def read(data: bytes, pos: int, out: Json, depth: int) -> int:
        size = data[pos]
        pos += 1
        if size > 127:
            size, pos = read_varint(data, pos - 1)
        if out.get(name) is None:
            out[name] = {}
        read_entry(data, pos, pos + size, out[name], depth)
        return pos + size

    return read


@dataclass(frozen=True, slots=True)
class _MapValue:
    key: int
    read: Callable[[bytes, int, int], tuple[Any, int]]
    zero: Callable[[], Any]


def _map_value(type_name: str, lookup: Lookup) -> _MapValue:
    if type_name in SCALARS:
        wire_type, decode = _SCALARS[type_name]
        return _MapValue(2 << 3 | wire_type, lambda data, pos, _: decode(data, pos), str)
    target = lookup(type_name)

    def read(data: bytes, pos: int, depth: int) -> tuple[Any, int]:
        size, pos = read_size(data, pos)
        return target.read(data, pos, pos + size, None, depth + 1), pos + size

    return _MapValue(2 << 3 | BYTES, read, lambda: read(b"\x00", 0, 0)[0])


def _entry_reader(value: _MapValue) -> Callable[[bytes, int, int, Json, int], None]:
    """Read entries: messages of key = 1 and value = 2, both optional, in any order."""
    value_key, read_value, zero = value.key, value.read, value.zero

    def read(data: bytes, pos: int, end: int, entries: Json, depth: int) -> None:
        key, member, missing = "", None, True
        while pos < end:
            tag = data[pos]
            if tag == 0x0A:
                key, pos = _string(data, pos + 1)
            elif tag == value_key:
                member, pos = read_value(data, pos + 1, depth)
                missing = False
            else:
                tag, pos = read_varint(data, pos)
                pos = skip(data, pos, tag)
        if pos != end:
            raise ProtobufError(TRUNCATED)
        entries[key] = zero() if missing else member

    return read


def _scalar(field: FieldFacts, decode: Decode) -> ReadField:
    name, omitempty = field.name, field.omitempty and not field.pointer

    def read(data: bytes, pos: int, out: Json, depth: int) -> int:
        value, pos = decode(data, pos)
        if value or not omitempty:
            out[name] = value
        else:
            out.pop(name, None)
        return pos

    return read


def _packed(name: str, decode: Decode) -> ReadField:
    def read(data: bytes, pos: int, out: Json, depth: int) -> int:
        size, pos = read_size(data, pos)
        end = pos + size
        values = out.get(name) or []
        while pos < end:
            value, pos = decode(data, pos)
            values.append(value)
        if pos != end:
            raise ProtobufError(TRUNCATED)
        if values:
            out[name] = values
        return pos

    return read


def _string(data: bytes, pos: int) -> tuple[str, int]:
    """Read a string. Go accepts any bytes, and prints invalid UTF-8 as U+FFFD."""
    size = data[pos]
    pos += 1
    if size > 127:
        size, pos = read_varint(data, pos - 1)
    return data[pos : pos + size].decode("utf-8", "replace"), pos + size


def read_bool(data: bytes, pos: int) -> tuple[bool, int]:
    number, pos = read_varint(data, pos)
    return number != 0, pos


def _int32(data: bytes, pos: int) -> tuple[int, int]:
    number, pos = read_size(data, pos)
    return (number if number < 128 else signed(number, 32)), pos


def _int64(data: bytes, pos: int) -> tuple[int, int]:
    number, pos = read_size(data, pos)
    return (number if number < 128 else signed(number)), pos


def _double(data: bytes, pos: int) -> tuple[float, int]:
    """Read a double; whole numbers become ints, because Go prints them without a fraction."""
    if pos + 8 > len(data):
        raise ProtobufError(TRUNCATED)
    (number,) = struct.unpack_from("<d", data, pos)
    if not math.isfinite(number):
        raise ProtobufError(f"json: unsupported value: {number}")
    return (int(number) if number.is_integer() and abs(number) < 1e21 else number), pos + 8


def _base64(data: bytes, pos: int) -> tuple[str, int]:
    size, pos = read_size(data, pos)
    return b2a_base64(data[pos : pos + size], newline=False).decode(), pos + size


_SCALARS: dict[str, tuple[int, Decode]] = {
    "string": (BYTES, _string),
    "bool": (VARINT, read_bool),
    "int32": (VARINT, _int32),
    "int64": (VARINT, _int64),
    "double": (FIXED64, _double),
    "bytes": (BYTES, _base64),
}

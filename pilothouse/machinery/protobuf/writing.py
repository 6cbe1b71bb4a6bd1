"""Compiler from a message's facts to its encoder, with the output of gogo's generated code.

Fields are encoded in the order of their numbers. Fields that Go holds by value are encoded even if zero. Null pointers,
lists, maps and bytes are omitted. Maps are sorted by key.

The encoder is generated source with one block per field. Its globals, by field number: T<number>, the message type;
M<number>, the encoding of an unset field; W<number>, a writer for fields without a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pilothouse.machinery.protobuf.message import define
from pilothouse.machinery.protobuf.wire import BYTES, SMALL, delimited, tag, varint
from pilothouse.machinery.wire_facts import SCALARS, FieldFacts, Label

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pilothouse.machinery.objects import Json
    from pilothouse.machinery.protobuf.message import Lookup, MessageType
import struct
from binascii import a2b_base64

from pilothouse.machinery.protobuf.wire import FIXED64, VARINT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilothouse.machinery.protobuf.message import Lookup
from typing import TYPE_CHECKING

from pilothouse.machinery.protobuf.message import fill

if TYPE_CHECKING:
    from collections.abc import Iterable


WriteMessage: TypeAlias = "Callable[[Json], bytes]"


def compile_writer(fields: Collection[FieldFacts], lookup: Lookup) -> WriteMessage:
    namespace: dict[str, Any] = {"SMALL": SMALL, "varint": varint}
    for field in fields:
        namespace |= _names_of(field, lookup)
    return define("write", writer_source(fields), namespace)


def _names_of(field: FieldFacts, lookup: Lookup) -> dict[str, Any]:
    """Return the globals of the field's source block."""
    if field.label is Label.MAP or field.type in SCALARS:
        return {f"W{field.number}": field_writer(field, lookup)}
    target = lookup(field.type)
    names: dict[str, Any] = {f"T{field.number}": target}
    by_value = field.label is Label.OPTIONAL and not field.pointer and not field.inline
    return names | ({f"M{field.number}": _unset(field.number, target)} if by_value else {})


def _unset(number: int, target: MessageType) -> bytes:
    """Return Go's encoding of an unset message held by value."""
    return b"" if target.nilable else delimited(tag(number, BYTES), target.empty)


Write: TypeAlias = "Callable[[Any], bytes]"
"""JSON value → encoded field, including the tag."""


def field_writer(field: FieldFacts, lookup: Lookup) -> Write:
    match field.label:
        case Label.REPEATED:
            write = _element(field.number, field.type, lookup)
            return lambda values: b"".join([write(value) for value in values])
        case Label.MAP:
            return _map(tag(field.number, BYTES), _element(2, field.type, lookup))
        case _:
            return _SCALARS[field.type](field.number)


def _element(number: int, type_name: str, lookup: Lookup) -> Write:
    """Return the writer of one element. Null elements are encoded as zero values, as in Go; nil bytes are omitted."""
    if type_name in SCALARS:
        scalar = _SCALARS[type_name](number)
        zero = b"" if type_name == "bytes" else scalar(_ZEROS[type_name])
        return lambda value: zero if value is None else scalar(value)
    head, target = tag(number, BYTES), lookup(type_name)
    return lambda value: delimited(head, target.empty if value is None else target.write(value))


def _map(head: bytes, write: Write) -> Write:
    """Write entries sorted by key. Code point order here equals the order of UTF-8 bytes in Go."""

    def write_entry(key: str, value: Any) -> bytes:
        return delimited(head, delimited(b"\x0a", key.encode()) + write(value))

    return lambda values: b"".join([write_entry(key, values[key]) for key in sorted(values)])


def _string(number: int) -> Write:
    head = tag(number, BYTES)
    return lambda value: delimited(head, value.encode())


def _number(number: int) -> Write:
    head = tag(number, VARINT)
    return lambda value: head + varint(value)


def _double(number: int) -> Write:
    head = tag(number, FIXED64)
    return lambda value: head + struct.pack("<d", value)


def _bytes(number: int) -> Write:
    head = tag(number, BYTES)
    return lambda value: delimited(head, a2b_base64(value, strict_mode=True))


_SCALARS = {"string": _string, "bool": _number, "int32": _number, "int64": _number, "double": _double, "bytes": _bytes}
_ZEROS: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0.0}


_WRITER = """\
def write(obj):
    get = obj.get
    parts = []
    add = parts.append
    {blocks}
    return b"".join(parts)
"""
_STRING = """\
value = get({name})
if value:
    body = value.encode()
    size = len(body)
    parts += {head}, SMALL[size] if size < 128 else varint(size), body
else:
    add({head_and_zero})
"""
_STRING_POINTER = """\
value = get({name})
if value is not None:
    body = value.encode()
    size = len(body)
    parts += {head}, SMALL[size] if size < 128 else varint(size), body
"""
_NUMBER = """\
value = get({name})
if value:
    parts += {head}, varint(value)
else:
    add({head_and_zero})
"""
_NUMBER_POINTER = """\
value = get({name})
if value is not None:
    parts += {head}, varint(value)
"""
_BOOL = """\
add({head_and_one} if get({name}) else {head_and_zero})
"""
_BOOL_POINTER = """\
value = get({name})
if value is not None:
    add({head_and_one} if value else {head_and_zero})
"""
_MESSAGE = """\
value = get({name})
if value is None:
    add(M{number})
else:
    body = T{number}.write(value)
    size = len(body)
    parts += {head}, SMALL[size] if size < 128 else varint(size), body
"""
_MESSAGE_POINTER = """\
value = get({name})
if value is not None:
    body = T{number}.write(value)
    size = len(body)
    parts += {head}, SMALL[size] if size < 128 else varint(size), body
"""
_INLINED = """\
body = T{number}.write(obj)
parts += {head}, varint(len(body)), body
"""
_REPEATED = """\
value = get({name})
if value:
    for item in value:
        body = T{number}.empty if item is None else T{number}.write(item)
        size = len(body)
        parts += {head}, SMALL[size] if size < 128 else varint(size), body
"""
_OTHER = """\
value = get({name})
if value is not None:
    add(W{number}(value))
"""


def writer_source(fields: Iterable[FieldFacts]) -> str:
    in_wire_order = sorted(fields, key=lambda field: field.number)
    return fill(_WRITER, blocks="".join(map(_block, in_wire_order)))


def _block(field: FieldFacts) -> str:
    varint_type = field.type in ("bool", "int32", "int64")
    head = tag(field.number, VARINT if varint_type else BYTES)
    return fill(
        _template(field),
        name=repr(field.name),
        number=str(field.number),
        head=repr(head),
        head_and_zero=repr(head + b"\x00"),
        head_and_one=repr(head + b"\x01"),
    )


def _template(field: FieldFacts) -> str:
    match field.label, field.type:
        case Label.OPTIONAL, "string":
            return _STRING_POINTER if field.pointer else _STRING
        case Label.OPTIONAL, "int32" | "int64":
            return _NUMBER_POINTER if field.pointer else _NUMBER
        case Label.OPTIONAL, "bool":
            return _BOOL_POINTER if field.pointer else _BOOL
        case (Label.MAP, _) | (_, "string" | "bool" | "int32" | "int64" | "double" | "bytes"):
            return _OTHER
        case Label.REPEATED, _:
            return _REPEATED
        case _:
            return _INLINED if field.inline else _MESSAGE_POINTER if field.pointer else _MESSAGE

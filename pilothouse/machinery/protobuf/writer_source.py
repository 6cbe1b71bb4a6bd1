"""The Python source of a message's writer, a block of lines for each field, in the order of their numbers.

The source leaves open, for each field: T<number>, its message type; M<number>, the bytes of an unset field;
W<number>, a writer for what has no block of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.machinery.protobuf.source import fill
from pilothouse.machinery.protobuf.wire import BYTES, VARINT, tag
from pilothouse.machinery.wire_facts import FieldFacts, Label

if TYPE_CHECKING:
    from collections.abc import Iterable

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

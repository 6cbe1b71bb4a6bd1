"""The Python source of a message's reader, a block of lines for each field.

Encoders write fields in the order of their numbers, so the blocks stand in that order and one pass over them reads
a whole message: each block asks whether the next tag is its own, and takes the field. Another order costs more passes.

    key       the next tag as it stands in the buffer, its bytes little-endian; 0 at the end of the message
    pos, end  where the next tag begins, and where the message ends
    out       the JSON object that is being filled

The source leaves open: T<number>, the field's message type; R<number>_<wire type>, a reader for what has no block of
its own; ORDER, the names in JSON's order; ZEROS, the makers of what a missing field stands for; NUMBERS, the fields'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.machinery.protobuf.field_readers import wire_types
from pilothouse.machinery.protobuf.source import fill
from pilothouse.machinery.protobuf.wire import tag
from pilothouse.machinery.wire_facts import SCALARS, FieldFacts, Label

if TYPE_CHECKING:
    from collections.abc import Iterable

# gogo drops what does not fit: an int32 that comes as 64 bits keeps its lower half.
_BITS = {"int32": "32", "int64": "64"}
_READER = """\
def read(data, pos, end, into, depth):
    if depth > MAX_DEPTH:
        raise ProtobufError("proto: message nested too deeply")
    out = dict() if into is None else into
    {next_key}
    while pos < end:
        start = pos
        {blocks}
        if pos == start:
            pos = skip_unknown(data, pos, NUMBERS)
            {next_key}
    if pos != end:
        raise ProtobufError(TRUNCATED)
    shuffled = {shuffled}
    {required}
    return {name: out[name] for name in ORDER if name in out} if shuffled else out
"""
_REQUIRED = """\
if {name} not in out:
    out[{name}] = ZEROS[{name}]()
    shuffled = True
"""
_BLOCK = """\
{word} key == {key}:
    {body}
    {next_key}
"""
_NEXT_KEY = """\
key = data[pos] if pos < end else 0
"""
_NEXT_LONG_KEY = """\
key = data[pos] if pos < end else 0
if key > 127:
    key |= data[pos + 1] << 8
"""
_STRING = """\
out[{name}] = data[pos:stop].decode("utf-8", "replace")
pos = stop
"""
_STRING_OMITEMPTY = """\
size = data[pos + {width}]
pos += {width} + 1
if size:
    if size > 127:
        size, pos = read_varint(data, pos - 1)
    stop = pos + size
    out[{name}] = data[pos:stop].decode("utf-8", "replace")
    pos = stop
elif {name} in out:
    del out[{name}]
"""
_NUMBER = """\
value = data[pos + {width}]
pos += {width} + 1
if value > 127:
    value, pos = read_varint(data, pos - 1)
    value = signed(value, {bits})
"""
_BOOL = """\
value = data[pos + {width}] != 0
pos += {width} + 1
if data[pos - 1] > 127:
    value, pos = read_bool(data, pos - 1)
"""
_STORE = """\
out[{name}] = value
"""
_STORE_OMITEMPTY = """\
if value:
    out[{name}] = value
elif {name} in out:
    del out[{name}]
"""
_EXTENT = """\
size = data[pos + {width}]
pos += {width} + 1
if size > 127:
    size, pos = read_varint(data, pos - 1)
stop = pos + size
"""
_MESSAGE = """\
out[{name}] = {type}.read(data, pos, stop, out.get({name}), depth + 1)
pos = stop
"""
_MESSAGE_OMITZERO = """\
value = {type}.read(data, pos, stop, None, depth + 1)
if value is not None:
    out[{name}] = value
pos = stop
"""
_INLINED = """\
{type}.read(data, pos, stop, out, depth + 1)
pos = stop
"""
_REPEATED = """\
value = {type}.read(data, pos, stop, None, depth + 1)
if out.get({name}) is None:
    out[{name}] = [value]
else:
    out[{name}].append(value)
pos = stop
"""
_OTHER = """\
pos = {reader}(data, pos + {width}, out, depth)
"""


def reader_source(fields: Iterable[FieldFacts], *, required: Iterable[str], shuffled: bool) -> str:
    """`required` are the fields that JSON always shows; `shuffled` says that the wire's order is not that of JSON."""
    in_wire_order = sorted(fields, key=lambda field: field.number)
    long_keys = any(field.number > 15 for field in in_wire_order)
    next_key = _NEXT_LONG_KEY if long_keys else _NEXT_KEY
    return fill(
        _READER,
        next_key=next_key,
        blocks="".join(_block(field, next_key) for field in in_wire_order),
        required="".join(fill(_REQUIRED, name=repr(name)) for name in required),
        shuffled=str(shuffled),
    )


def _block(field: FieldFacts, next_key: str) -> str:
    """A field that may come under two wire types has two blocks. A list's items follow one another, hence the loop."""
    word = "if" if field.label is Label.OPTIONAL else "while"
    blocks = []
    for wire_type in wire_types(field):
        head = tag(field.number, wire_type)
        parts = {
            "name": repr(field.name),
            "width": str(len(head)),
            "type": f"T{field.number}",
            "reader": f"R{field.number}_{wire_type}",
            "bits": _BITS.get(field.type, ""),
        }
        key = str(int.from_bytes(head, "little"))
        blocks.append(fill(_BLOCK, word=word, key=key, body=fill(_body(field), **parts), next_key=next_key))
    return "".join(blocks)


def _body(field: FieldFacts) -> str:
    omitempty = field.omitempty and not field.pointer
    match field.label, field.type:
        case Label.OPTIONAL, "string":
            return _STRING_OMITEMPTY if omitempty else _EXTENT + _STRING
        case Label.OPTIONAL, "bool" | "int32" | "int64":
            store = _STORE_OMITEMPTY if omitempty else _STORE
            return (_BOOL if field.type == "bool" else _NUMBER) + store
        case Label.MAP, _:
            return _OTHER
        case _, scalar if scalar in SCALARS:
            return _OTHER
        case Label.REPEATED, _:
            return _EXTENT + _REPEATED
        case _:
            return _EXTENT + (_INLINED if field.inline else _MESSAGE_OMITZERO if field.omitzero else _MESSAGE)

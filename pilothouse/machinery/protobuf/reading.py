"""Compiler from a message's facts to its decoder, which returns the JSON object that Go would print.

Zero values are omitted if the field has omitempty, else present. Structs held by value are always present. Unknown
fields are skipped. Repeated scalars may be packed. Keys have the order of Go's struct.

The decoder is generated source with one block per field. Encoders write fields in the order of their numbers, and the
blocks have the same order, so a single pass over the blocks reads a whole message: each block compares the next tag
with its own. Another field order costs more passes. Variables of the source:

    key       the next tag, its bytes little-endian; 0 at the end of the message
    pos, end  start of the next tag, and end of the message
    out       the JSON object

Globals of the source: T<number>, the field's message type; R<number>_<wire type>, a reader for fields without a block;
ORDER, the names in JSON's order; ZEROS, factories of missing fields; NUMBERS, the field numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.protobuf.field_readers import field_readers, read_bool
from pilothouse.machinery.protobuf.message import define
from pilothouse.machinery.protobuf.wire import MAX_DEPTH, TRUNCATED, ProtobufError, read_varint, signed, skip
from pilothouse.machinery.wire_facts import SCALARS, FieldFacts, Label, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from pilothouse.machinery.objects import Json
    from pilothouse.machinery.protobuf.message import Lookup

    Read: TypeAlias = Callable[[bytes, int, int, Json | None, int], Json]
from typing import TYPE_CHECKING

from pilothouse.machinery.protobuf.field_readers import wire_types
from pilothouse.machinery.protobuf.message import fill
from pilothouse.machinery.protobuf.wire import tag

if TYPE_CHECKING:
    from collections.abc import Iterable


def compile_reader(facts: Mapping[str, FieldFacts], lookup: Lookup) -> Read:
    fields = list(_flattened(facts))
    required = _required(fields, lookup)
    namespace: dict[str, Any] = {
        **_GLOBALS,
        "NUMBERS": frozenset(field.number for field in facts.values()),
        "ORDER": [field.name for field in fields],
        "ZEROS": required,
    }
    for field in facts.values():
        names: dict[str, Any] = {
            f"R{field.number}_{key}": reader for key, reader in field_readers(field, lookup).items()
        }
        namespace |= names if field.type in SCALARS else names | {f"T{field.number}": lookup(field.type)}
    source = reader_source(facts.values(), required=required, shuffled=_is_shuffled(facts))
    return define("read", source, namespace)


def _skip_unknown(data: bytes, pos: int, numbers: frozenset[int]) -> int:
    """Skip an unknown field. A known number here has the wrong wire type. Raises ProtobufError."""
    key, pos = read_varint(data, pos)
    if key >> 3 in numbers:
        raise ProtobufError(f"proto: wrong wireType = {key & 7} for field {key >> 3}")
    return skip(data, pos, key)


_GLOBALS = {
    "MAX_DEPTH": MAX_DEPTH,
    "ProtobufError": ProtobufError,
    "TRUNCATED": TRUNCATED,
    "read_varint": read_varint,
    "read_bool": read_bool,
    "signed": signed,
    "skip_unknown": _skip_unknown,
}


def _flattened(facts: Mapping[str, FieldFacts]) -> Iterable[FieldFacts]:
    """Yield the fields of the JSON object; inlined messages are replaced by their fields."""
    for field in facts.values():
        if field.inline:
            yield from _flattened(facts_of(*field.type.rsplit(".", 1)))
        else:
            yield field


def _is_shuffled(facts: Mapping[str, FieldFacts]) -> bool:
    """Return whether the order of Go's struct differs from the order on the wire."""
    inlined = (facts_of(*field.type.rsplit(".", 1)) for field in facts.values() if field.inline)
    out_of_order = any(a.number > b.number for a, b in pairwise(facts.values()))
    return out_of_order or any(map(_is_shuffled, inlined))


def _required(fields: list[FieldFacts], lookup: Lookup) -> dict[str, Callable[[], Any]]:
    """Return the zero-value factories of fields that JSON always contains."""
    is_list = any(field.type == _LIST_META for field in fields)
    zeros = ((field.name, _zero(field, lookup, is_list=is_list)) for field in fields)
    return {name: zero for name, zero in zeros if zero is not None}


def _zero(field: FieldFacts, lookup: Lookup, *, is_list: bool) -> Callable[[], Any] | None:
    if field.label is not Label.OPTIONAL or field.pointer or field.type == "bytes":
        # A server never responds with null items, although Go prints a nil slice as null.
        return None if field.omitempty else list if is_list and field.name == "items" else _null
    if field.type in SCALARS:
        return None if field.omitempty else _ZEROS[field.type]
    target = lookup(field.type)
    if field.omitzero or (target.nilable and field.omitempty):
        return None
    return target.zero


def _null() -> None:
    return None


_LIST_META = "k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta"
_ZEROS: dict[str, Callable[[], Any]] = {"string": str, "bool": bool, "int32": int, "int64": int, "double": int}


# gogo truncates: an int32 encoded in 64 bits keeps its lower half.
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
    """required: fields that JSON always contains. shuffled: the order on the wire differs from the order in JSON."""
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
    """Return the source of one field. A field with two wire types has two blocks; repeated items are consecutive, hence
    the loop."""
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

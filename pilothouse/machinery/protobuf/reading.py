"""Compiles a message's facts into the function that reads its body into the JSON object that Go would print.

A zero value is left out where Go's tag says omitempty, present where it does not; a struct held by value is always
present; unknown fields are skipped; a repeated scalar may be packed. Keys come in the order of Go's struct.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.protobuf.field_readers import field_readers, read_bool
from pilothouse.machinery.protobuf.reader_source import reader_source
from pilothouse.machinery.protobuf.source import define
from pilothouse.machinery.protobuf.wire import MAX_DEPTH, TRUNCATED, ProtobufError, read_varint, signed, skip
from pilothouse.machinery.wire_facts import SCALARS, FieldFacts, Label, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from pilothouse.machinery.objects import Json
    from pilothouse.machinery.protobuf.message import Lookup

    Read: TypeAlias = Callable[[bytes, int, int, Json | None, int], Json]


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
        namespace |= _names_of(field, lookup)
    source = reader_source(facts.values(), required=required, shuffled=_is_shuffled(facts))
    return define("read", source, namespace)


def _names_of(field: FieldFacts, lookup: Lookup) -> dict[str, Any]:
    """What the field's block of source refers to."""
    names: dict[str, Any] = {f"R{field.number}_{key}": reader for key, reader in field_readers(field, lookup).items()}
    return names if field.type in SCALARS else names | {f"T{field.number}": lookup(field.type)}


def _skip_unknown(data: bytes, pos: int, numbers: frozenset[int]) -> int:
    """A known number here has a wire type that is not its own."""
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
    """The fields that the JSON object shows, those of inlined messages in their place."""
    for field in facts.values():
        if field.inline:
            yield from _flattened(facts_of(*field.type.rsplit(".", 1)))
        else:
            yield field


def _is_shuffled(facts: Mapping[str, FieldFacts]) -> bool:
    """Whether the order of Go's struct is not the order on the wire."""
    inlined = (facts_of(*field.type.rsplit(".", 1)) for field in facts.values() if field.inline)
    out_of_order = any(a.number > b.number for a, b in pairwise(facts.values()))
    return out_of_order or any(map(_is_shuffled, inlined))


def _required(fields: list[FieldFacts], lookup: Lookup) -> dict[str, Callable[[], Any]]:
    """The fields that JSON shows even when they were not on the wire, and what it shows."""
    is_list = any(field.type == _LIST_META for field in fields)
    zeros = ((field.name, _zero(field, lookup, is_list=is_list)) for field in fields)
    return {name: zero for name, zero in zeros if zero is not None}


def _zero(field: FieldFacts, lookup: Lookup, *, is_list: bool) -> Callable[[], Any] | None:
    if field.label is not Label.OPTIONAL or field.pointer or field.type == "bytes":
        # A server never answers a list of objects with null for its items, though Go's nil slice would print so.
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

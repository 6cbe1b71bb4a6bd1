"""Compiles a message's facts into the function that writes its body, as gogo's generated code would write it.

Fields go out in the order of their numbers. A field that Go holds by value is written even when it is zero;
a pointer, a list, a map and bytes are left out when they are null. Maps are sorted by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pilothouse.machinery.protobuf.field_writers import field_writer
from pilothouse.machinery.protobuf.source import define
from pilothouse.machinery.protobuf.wire import BYTES, SMALL, delimited, tag, varint
from pilothouse.machinery.protobuf.writer_source import writer_source
from pilothouse.machinery.wire_facts.facts import SCALARS, FieldFacts, Label

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pilothouse.machinery.objects import Json
    from pilothouse.machinery.protobuf.message import Lookup, MessageType

WriteMessage: TypeAlias = "Callable[[Json], bytes]"


def compile_writer(fields: Collection[FieldFacts], lookup: Lookup) -> WriteMessage:
    namespace: dict[str, Any] = {"SMALL": SMALL, "varint": varint}
    for field in fields:
        namespace |= _names_of(field, lookup)
    return define("write", writer_source(fields), namespace)


def _names_of(field: FieldFacts, lookup: Lookup) -> dict[str, Any]:
    """What the field's block of source refers to."""
    if field.label is Label.MAP or field.type in SCALARS:
        return {f"W{field.number}": field_writer(field, lookup)}
    target = lookup(field.type)
    names: dict[str, Any] = {f"T{field.number}": target}
    by_value = field.label is Label.OPTIONAL and not field.pointer and not field.inline
    return names | ({f"M{field.number}": _unset(field.number, target)} if by_value else {})


def _unset(number: int, target: MessageType) -> bytes:
    """What Go writes for a message held by value that nobody set."""
    return b"" if target.nilable else delimited(tag(number, BYTES), target.empty)

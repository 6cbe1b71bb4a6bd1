"""Byte fields of built-in types: base64 text in JSON, byte strings in CBOR."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.schema.nodes import Scalar, TypeNode


@dataclass(frozen=True, slots=True)
class ByteFields:
    """Paths to the byte fields of a type, through struct fields and through elements of lists and maps."""

    fields: Mapping[str, ByteFields] | None = None
    element: ByteFields | None = None


_HERE = ByteFields()


def byte_fields_of(node: TypeNode, around: frozenset[TypeNode] = frozenset()) -> ByteFields | None:
    """Return the byte fields of a type; None for a type without bytes."""
    if node.scalar is Scalar.BYTES:
        return _HERE
    if node in around:
        return None
    around |= {node}
    if node.element is not None:
        element = byte_fields_of(node.element, around)
        return None if element is None else ByteFields(element=element)
    by_name = {name: byte_fields_of(field.node, around) for name, field in node.fields.items()}
    known = {name: fields for name, fields in by_name.items() if fields is not None}
    return ByteFields(known) if known else None


def bytes_in(way: ByteFields, value: Any) -> Iterator[str]:
    """Yield the base64 texts of all byte fields."""
    if way is _HERE:
        if isinstance(value, str):
            yield value
    elif way.element is not None:
        members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for member in members:
            yield from bytes_in(way.element, member)
    elif isinstance(value, dict):
        for name, below in (way.fields or {}).items():
            if name in value:
                yield from bytes_in(below, value[name])


def with_bytes(way: ByteFields, value: Any) -> Any:
    """Return a copy with bytes in place of base64 text. The copy may share parts with `value`, which stays
    unchanged."""
    if way is _HERE:
        return b64decode(value) if isinstance(value, str) else value
    if isinstance(value, list) and way.element is not None:
        return [with_bytes(way.element, item) for item in value]
    if not isinstance(value, dict):
        return value
    if way.element is not None:
        return {key: with_bytes(way.element, member) for key, member in value.items()}
    fields = way.fields or {}
    return {key: with_bytes(fields[key], member) if key in fields else member for key, member in value.items()}

"""apiextensions' unions, which JSON shows as one of their members: schema or bool, schema or list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilothouse.machinery.protobuf.scan import Raw, scan, texts_of
from pilothouse.machinery.protobuf.values import Value
from pilothouse.machinery.protobuf.wire import delimited

if TYPE_CHECKING:
    from pilothouse.machinery.protobuf.message import MessageType


class SchemaOrBool(Value):
    """allows = 1, schema = 2. A schema implies allows."""

    empty = b"\x08\x00"

    def __init__(self, schema: MessageType) -> None:
        self._schema = schema

    def zero(self) -> bool:
        return False

    def write(self, value: dict[str, Any] | bool) -> bytes:
        if isinstance(value, bool):
            return b"\x08\x01" if value else b"\x08\x00"
        return b"\x08\x01" + delimited(b"\x12", self._schema.write(value))

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        found = dict(scan(data, pos, end, (0x08, 0x12)))
        return _read(self._schema, found[0x12], depth) if 0x12 in found else bool(found.get(0x08))


class SchemaOrSchemas(Value):
    """schema = 1, jSONSchemas = 2."""

    def __init__(self, schema: MessageType) -> None:
        self._schema = schema

    def write(self, value: dict[str, Any] | list[dict[str, Any]]) -> bytes:
        if isinstance(value, dict):
            return delimited(b"\x0a", self._schema.write(value))
        return b"".join([delimited(b"\x12", self._schema.write(item or {})) for item in value])

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        found = scan(data, pos, end, (0x0A, 0x12))
        schemas = [_read(self._schema, raw, depth) for key, raw in found if key == 0x12]
        return schemas or _only_schema(self._schema, found, depth)


class SchemaOrStrings(Value):
    """schema = 1, property = 2."""

    def __init__(self, schema: MessageType) -> None:
        self._schema = schema

    def write(self, value: dict[str, Any] | list[str]) -> bytes:
        if isinstance(value, dict):
            return delimited(b"\x0a", self._schema.write(value))
        return b"".join([delimited(b"\x12", item.encode()) for item in value])

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        found = scan(data, pos, end, (0x0A, 0x12))
        return texts_of(found, 0x12) or _only_schema(self._schema, found, depth)


def _only_schema(schema: MessageType, found: list[tuple[int, Raw]], depth: int) -> Any:
    raw = dict(found).get(0x0A)
    return None if raw is None else _read(schema, raw, depth)


def _read(schema: MessageType, raw: Raw, depth: int) -> Any:
    assert isinstance(raw, bytes)
    return schema.read(raw, 0, len(raw), None, depth + 1)

"""Messages with a scalar JSON form: times, durations, quantities, int-or-string, raw JSON, lists of strings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.durations import format_duration, parse_duration
from pilothouse.machinery.protobuf.wire import (
    TRUNCATED,
    ProtobufError,
    Raw,
    bytes_of,
    delimited,
    fields_of,
    int_of,
    scan,
    text_of,
    texts_of,
    varint,
)
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.schema.raw_json import RawObject, raw_text
from pilothouse.machinery.times import format_micro_time, format_time, parse_micro_time, parse_time

if TYPE_CHECKING:
    from pilothouse.machinery.protobuf.message import MessageType


_REMEMBERED = 4096  # values
_SMALL = 48  # bytes
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)


class Value:
    """A Go struct: always encoded if the field holds it by value. Its zero value is null in JSON unless a subclass
    overrides it."""

    nilable = False
    empty = b""

    def zero(self) -> Any:
        return None


class SmallValue(Value):
    """A small, frequently repeated value; both directions are cached."""

    def __init__(self) -> None:
        remembered = bounded_cache(entries=_REMEMBERED, key_bytes=_SMALL)
        self._written = remembered(self._write)
        self._seen = remembered(self._read)

    def write(self, value: Any) -> bytes:
        return self._written(value) if isinstance(value, str) else self._write(value)

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        body = data[pos:end]
        if len(body) != end - pos:
            raise ProtobufError(TRUNCATED)
        return self._seen(body)

    def _write(self, value: Any) -> bytes:
        raise NotImplementedError

    def _read(self, body: bytes) -> Any:
        raise NotImplementedError


class Time(SmallValue):
    """Whole seconds. The zero time is an empty message."""

    def _write(self, value: str) -> bytes:
        moment = parse_time(value)
        return b"" if moment is None else b"\x08" + varint(_unix_seconds(moment)) + b"\x10\x00"

    def _read(self, body: bytes) -> str | None:
        moment = _EPOCH + timedelta(seconds=int_of(fields_of(body, 0x08, 0x10), 0x08))
        return format_time(moment) if body and moment != _ZERO_TIME else None


class MicroTime(SmallValue):
    """Microseconds. The zero time is an empty message."""

    def _write(self, value: str) -> bytes:
        moment = parse_micro_time(value)
        if moment is None:
            return b""
        return b"\x08" + varint(_unix_seconds(moment)) + b"\x10" + varint(moment.microsecond * 1000)

    def _read(self, body: bytes) -> str | None:
        fields = fields_of(body, 0x08, 0x10)
        micros = int_of(fields, 0x10, bits=32) // 1000
        moment = _EPOCH + timedelta(seconds=int_of(fields, 0x08), microseconds=micros)
        return format_micro_time(moment) if body and moment != _ZERO_TIME else None


def _unix_seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)


class Duration(SmallValue):
    """Nanoseconds, in Go's notation."""

    empty = b"\x08\x00"

    def zero(self) -> str:
        return "0s"

    def _write(self, value: str) -> bytes:
        return b"\x08" + varint(parse_duration(value))

    def _read(self, body: bytes) -> str:
        return format_duration(int_of(fields_of(body, 0x08), 0x08))


class Quantity(SmallValue):
    """A quantity in canonical text form. JSON may contain a bare number."""

    empty = b"\x0a\x010"

    def zero(self) -> str:
        return "0"

    def _write(self, value: str | float) -> bytes:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        return delimited(b"\x0a", str(parse_quantity(text)).encode())

    def _read(self, body: bytes) -> str:
        return str(parse_quantity(text_of(fields_of(body, 0x0A), 0x0A, missing="0")))


class IntOrString(SmallValue):
    empty = b"\x08\x00\x10\x00\x1a\x00"

    def zero(self) -> int:
        return 0

    def _write(self, value: int | str) -> bytes:
        if isinstance(value, str):
            return b"\x08\x01\x10\x00" + delimited(b"\x1a", value.encode())
        return b"\x08\x00\x10" + varint(value) + b"\x1a\x00"

    def _read(self, body: bytes) -> int | str:
        fields = fields_of(body, 0x08, 0x10, 0x1A)
        match int_of(fields, 0x08):
            case 0:
                return int_of(fields, 0x10, bits=32)
            case 1:
                return text_of(fields, 0x1A)
            case _:
                raise ProtobufError("impossible IntOrString.Type")


class RawJson(Value):
    """FieldsV1 and apiextensions' JSON: any JSON value, encoded as text."""

    def write(self, value: Any) -> bytes:
        return delimited(b"\x0a", orjson.dumps(value))

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        raw = bytes_of(dict(scan(data, pos, end, (0x0A,))), 0x0A)
        return orjson.loads(raw) if raw else None


class RawExtension(RawJson):
    """A JSON value with preserved text."""

    def write(self, value: Any) -> bytes:
        return delimited(b"\x0a", raw_text(value))

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        raw = bytes_of(dict(scan(data, pos, end, (0x0A,))), 0x0A)
        value = orjson.loads(raw) if raw else None
        return RawObject.of(value, raw) if isinstance(value, dict) else value


class BareList:
    """A named slice of strings, such as Verbs: a message on the wire, a list in JSON. Empty and nil are distinct."""

    nilable = True
    empty = b""

    def zero(self) -> None:
        return None

    def write(self, value: list[str]) -> bytes:
        return b"".join([delimited(b"\x0a", item.encode()) for item in value])

    def read(self, data: bytes, pos: int, end: int, into: list[str] | None, depth: int) -> list[str]:
        items = texts_of(scan(data, pos, end, (0x0A,)), 0x0A)
        return items if into is None else into + items


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
        fields = dict(scan(data, pos, end, (0x08, 0x12)))
        return _read(self._schema, fields[0x12], depth) if 0x12 in fields else bool(fields.get(0x08))


class SchemaOrSchemas(Value):
    """schema = 1, jSONSchemas = 2."""

    def __init__(self, schema: MessageType) -> None:
        self._schema = schema

    def write(self, value: dict[str, Any] | list[dict[str, Any]]) -> bytes:
        if isinstance(value, dict):
            return delimited(b"\x0a", self._schema.write(value))
        return b"".join([delimited(b"\x12", self._schema.write(item or {})) for item in value])

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        fields = scan(data, pos, end, (0x0A, 0x12))
        schemas = [_read(self._schema, raw, depth) for key, raw in fields if key == 0x12]
        return schemas or _only_schema(self._schema, fields, depth)


class SchemaOrStrings(Value):
    """schema = 1, property = 2."""

    def __init__(self, schema: MessageType) -> None:
        self._schema = schema

    def write(self, value: dict[str, Any] | list[str]) -> bytes:
        if isinstance(value, dict):
            return delimited(b"\x0a", self._schema.write(value))
        return b"".join([delimited(b"\x12", item.encode()) for item in value])

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        fields = scan(data, pos, end, (0x0A, 0x12))
        return texts_of(fields, 0x12) or _only_schema(self._schema, fields, depth)


def _only_schema(schema: MessageType, fields: list[tuple[int, Raw]], depth: int) -> Any:
    raw = dict(fields).get(0x0A)
    return None if raw is None else _read(schema, raw, depth)


def _read(schema: MessageType, raw: Raw, depth: int) -> Any:
    assert isinstance(raw, bytes)
    return schema.read(raw, 0, len(raw), None, depth + 1)

"""Messages whose JSON form is one value: times, durations, quantities, int-or-string, raw JSON, lists of strings."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import orjson

from pilothouse.machinery.protobuf.errors import ProtobufError
from pilothouse.machinery.protobuf.scan import bytes_of, fields_of, int_of, scan, text_of, texts_of
from pilothouse.machinery.protobuf.times import (
    ZERO_TIME,
    format_duration,
    format_micros,
    format_seconds,
    parse_duration,
    parse_time,
    unix_seconds,
)
from pilothouse.machinery.protobuf.wire import TRUNCATED, delimited, varint

_REMEMBERED = 4096  # values
_SMALL = 48  # bytes
_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?", re.ASCII)


class Value:
    """A struct in Go: a field that holds it by value is always written. Null in JSON unless its type says otherwise."""

    nilable = False
    empty = b""

    def zero(self) -> Any:
        return None


class SmallValue(Value):
    """A value of few bytes, of which the same few come again and again: both directions remember them."""

    def __init__(self) -> None:
        self._written = lru_cache(maxsize=_REMEMBERED, typed=True)(self._write)
        self._seen = lru_cache(maxsize=_REMEMBERED)(self._read)

    def write(self, value: Any) -> bytes:
        small = not isinstance(value, str) or len(value) <= _SMALL
        return self._written(value) if small else self._write(value)

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        body = data[pos:end]
        if len(body) != end - pos:
            raise ProtobufError(TRUNCATED)
        return self._seen(body) if end - pos <= _SMALL else self._read(body)

    def _write(self, value: Any) -> bytes:
        raise NotImplementedError

    def _read(self, body: bytes) -> Any:
        raise NotImplementedError


class Time(SmallValue):
    """Whole seconds. The zero time is an empty message."""

    def _write(self, value: str) -> bytes:
        seconds = unix_seconds(parse_time(value))
        return b"" if seconds == ZERO_TIME else b"\x08" + varint(seconds) + b"\x10\x00"

    def _read(self, body: bytes) -> str | None:
        seconds = int_of(fields_of(body, 0x08, 0x10), 0x08)
        return None if not body or seconds == ZERO_TIME else format_seconds(seconds)


class MicroTime(SmallValue):
    """Microseconds. The zero time is an empty message."""

    def _write(self, value: str) -> bytes:
        moment = parse_time(value)
        seconds, nanos = unix_seconds(moment), moment.microsecond * 1000
        return b"" if (seconds, nanos) == (ZERO_TIME, 0) else b"\x08" + varint(seconds) + b"\x10" + varint(nanos)

    def _read(self, body: bytes) -> str | None:
        found = fields_of(body, 0x08, 0x10)
        seconds, micros = int_of(found, 0x08), int_of(found, 0x10, bits=32) // 1000
        return None if not body or (seconds, micros) == (ZERO_TIME, 0) else format_micros(seconds, micros)


class Duration(SmallValue):
    """Nanoseconds, shown as Go shows them."""

    empty = b"\x08\x00"

    def zero(self) -> str:
        return "0s"

    def _write(self, value: str) -> bytes:
        return b"\x08" + varint(parse_duration(value))

    def _read(self, body: bytes) -> str:
        return format_duration(int_of(fields_of(body, 0x08), 0x08))


class Quantity(SmallValue):
    """A number with a suffix, as text. JSON may also give a bare number."""

    empty = b"\x0a\x010"

    def zero(self) -> str:
        return "0"

    def _write(self, value: str | float) -> bytes:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        return delimited(b"\x0a", text.encode())

    def _read(self, body: bytes) -> str:
        text = text_of(fields_of(body, 0x0A), 0x0A, missing="0")
        if not _QUANTITY.fullmatch(text):
            raise ProtobufError(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
        return text


class IntOrString(SmallValue):
    empty = b"\x08\x00\x10\x00\x1a\x00"

    def zero(self) -> int:
        return 0

    def _write(self, value: int | str) -> bytes:
        if isinstance(value, str):
            return b"\x08\x01\x10\x00" + delimited(b"\x1a", value.encode())
        return b"\x08\x00\x10" + varint(value) + b"\x1a\x00"

    def _read(self, body: bytes) -> int | str:
        found = fields_of(body, 0x08, 0x10, 0x1A)
        match int_of(found, 0x08):
            case 0:
                return int_of(found, 0x10, bits=32)
            case 1:
                return text_of(found, 0x1A)
            case _:
                raise ProtobufError("impossible IntOrString.Type")


class RawJson(Value):
    """RawExtension, FieldsV1 and apiextensions' JSON: any JSON value, as its text."""

    def write(self, value: Any) -> bytes:
        return delimited(b"\x0a", orjson.dumps(value))

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int) -> Any:
        raw = bytes_of(dict(scan(data, pos, end, (0x0A,))), 0x0A)
        return orjson.loads(raw) if raw else None


class BareList:
    """A named slice of strings, such as Verbs: a message on the wire, a list in JSON. Empty and nil are kept apart."""

    nilable = True
    empty = b""

    def zero(self) -> None:
        return None

    def write(self, value: list[str]) -> bytes:
        return b"".join([delimited(b"\x0a", item.encode()) for item in value])

    def read(self, data: bytes, pos: int, end: int, into: list[str] | None, depth: int) -> list[str]:
        items = texts_of(scan(data, pos, end, (0x0A,)), 0x0A)
        return items if into is None else into + items

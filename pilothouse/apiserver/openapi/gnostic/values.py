"""Single values on the wire. Free values and vendor extensions travel as YAML text, and JSON is YAML."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import orjson

from pilothouse.machinery.protobuf.wire import BYTES, FIXED64, VARINT, delimited, tag, varint

_YAML = 2


def nested(number: int, content: bytes) -> bytes:
    return delimited(tag(number, BYTES), content)


def named(name: str, content: bytes) -> bytes:
    """The content of an entry of a map."""
    return string(1, name) + nested(2, content)


def any_value(value: Any) -> bytes:
    """The content of an Any."""
    return nested(_YAML, orjson.dumps(value))


def string(number: int, value: str) -> bytes:
    return nested(number, value.encode())


def boolean(number: int, value: bool) -> bytes:
    return tag(number, VARINT) + varint(value)


def integer(number: int, value: int) -> bytes:
    return tag(number, VARINT) + varint(value)


def double(number: int, value: float) -> bytes:
    return tag(number, FIXED64) + struct.pack("<d", value)


SCALARS: dict[str, Callable[[int, Any], bytes]] = {
    "string": string,
    "bool": boolean,
    "int": integer,
    "double": double,
}
"""By form; each writes a whole field."""

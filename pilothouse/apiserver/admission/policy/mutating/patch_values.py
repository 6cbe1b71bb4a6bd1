"""Conversion of CEL objects and patches to JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.cel.interpreter.values import Duration, Optional, Struct, Timestamp, from_key
from pilothouse.machinery.cel.library.conversions import text_of
from pilothouse.machinery.gofmt import quote


class NotJson(ValueError):
    """The value has no JSON representation."""


def as_json(value: Any) -> Any:
    """Convert a CEL value to JSON. Raises NotJson."""
    match value:
        case Struct():
            return {name: as_json(each) for name, each in value.fields.items()}
        case dict():
            return {_key(from_key(name)): as_json(each) for name, each in value.items()}
        case list():
            return [as_json(each) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
        case Timestamp() | Duration():
            return text_of(value)
        case Optional():
            return as_json(value.value)
        case None | bool() | int() | float() | str():
            return value
    raise NotJson(f"{type(value).__name__} is no value of an object")


def _key(name: Any) -> str:
    if not isinstance(name, str):
        raise NotJson(f"map key {quote(str(name))} is of type {type(name).__name__}, not string")
    return name


def type_mismatches(value: Any, path: str) -> Iterator[str]:
    """Yield a message for each object of a wrong type, such as `Object.spec{metadata: …}` in `spec`."""
    match value:
        case Struct():
            if value.type != path:
                why = "which matches field name path from root Object type"
                yield f"unexpected type name {quote(value.type)}, expected {quote(path)}, {why}"
            for name, each in value.fields.items():
                yield from type_mismatches(each, f"{path}.{name}")
        case list():
            for each in value:
                yield from type_mismatches(each, path)
        case dict():
            for each in value.values():
                yield from type_mismatches(each, path)

"""CEL values of objects: fields by their CEL names, formatted strings as their parsed values."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.extensions.schema.rules.declared import with_type_and_name
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.unordered import MapList, SetList
from pilothouse.machinery.cel.interpreter.values import Duration, Misfit
from pilothouse.machinery.cel.library.conversions import timestamp_of_text
from pilothouse.machinery.cel.names import escaped
from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.gofmt import go_type
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.formats import is_date

Conversion: TypeAlias = Callable[[Any], Any]

_NULL = Misfit("invalid data, got null for schema with nullable=false")
_NOT_INT_OR_STRING = Misfit("invalid data, expected XIntOrString value to be either a string or integer")
_NO_MAP = Misfit("invalid data, expected a map for the provided schema with type=object")
_NO_LIST = Misfit("invalid data, expected an array for the provided schema with type=array")


def conversion(schema: Structural | None, *, root: bool = False) -> Conversion:
    """Return the conversion, compiled once per schema with rules. Values may mismatch the schema: a number in float
    notation is no int, and embedded objects are not validated before their rules run."""
    if schema is None:
        return _as_it_is
    convert, null = _conversion(schema, root=root), None if schema.source.get("nullable") else _NULL
    return lambda value: null if value is None else convert(value)


def _conversion(schema: Structural, *, root: bool) -> Conversion:
    if schema.int_or_string:
        return lambda value: value if type(value) in (int, str) else _NOT_INT_OR_STRING
    if schema.type == "object" and schema.additional is not None:
        assert schema.additional is not None
        inner = conversion(schema.additional, root=schema.additional.embedded_resource)

        def convert(value: Any) -> Json | Misfit:
            return {name: inner(child) for name, child in value.items()} if isinstance(value, dict) else _NO_MAP

        return convert
    if schema.type == "object":
        return _object(with_type_and_name(schema) if root else schema)
    if schema.type == "array":
        item = conversion(schema.items, root=schema.items is not None and schema.items.embedded_resource)
        make = _list_maker(schema)
        return lambda value: make([item(element) for element in value]) if isinstance(value, list) else _NO_LIST
    if schema.type == "string":
        return _of_type(str, "string", _STRINGS.get(schema.source.get("format") or "", _as_it_is))
    return _SCALARS.get(schema.type, _as_it_is)


def _of_type(kind: type, called: str, convert: Conversion) -> Conversion:
    def checked(value: Any) -> Any:
        if type(value) is kind:
            return convert(value)
        return Misfit(f"invalid data, expected {called}, got {go_type(value)}")

    return checked


def _number(value: Any) -> Any:
    return _FLOAT(float(value) if type(value) is int else value)


def _as_it_is(value: Any) -> Any:
    return value


def _object(schema: Structural) -> Conversion:
    fields: dict[str, tuple[str, Conversion]] = {}
    for name, child in schema.properties.items():
        if (cel_name := escaped(name)) is not None:
            fields[name] = (cel_name, conversion(child, root=child.embedded_resource))

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return _NO_MAP
        declared = ((fields[name], child) for name, child in value.items() if name in fields)
        return {cel_name: inner(child) for (cel_name, inner), child in declared}

    return convert


def _list_maker(schema: Structural) -> Conversion:
    if schema.list_type == "set":
        return SetList
    if schema.list_type == "map":
        keys = tuple(escaped(key) or key for key in schema.map_keys)
        return lambda items: MapList(items, keys=keys)
    return _as_it_is


def _time(value: str) -> Any:
    try:
        return timestamp_of_text(f"{value}T00:00:00Z" if is_date(value) else value.upper())
    except EvaluationFailed:
        return value


def _duration(value: str) -> Any:
    try:
        return Duration(parse_duration(value))
    except DurationError:
        return value


def _bytes(value: str) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value


_STRINGS: dict[str, Conversion] = {"byte": _bytes, "date": _time, "date-time": _time, "duration": _duration}
_FLOAT = _of_type(float, "float", _as_it_is)
_SCALARS: dict[str, Conversion] = {
    "number": _number,
    "integer": _of_type(int, "int", _as_it_is),
    "boolean": _of_type(bool, "bool", _as_it_is),
}

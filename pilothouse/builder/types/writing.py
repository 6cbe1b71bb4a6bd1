"""Conversion of values to JSON."""

from __future__ import annotations

import base64
from datetime import date, datetime
from enum import Enum
from types import NoneType
from typing import Any

from pilothouse.builder.types.fields import WireField, fields_of, is_object
from pilothouse.builder.types.pydantic_models import is_model, write_model
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time

_JSON_SCALARS = frozenset({str, int, float, bool, NoneType})
_LISTS = (list, tuple)


def to_wire(value: Any) -> Any:
    """Return a value as JSON, without shared lists and dicts.

    Dataclasses become objects with camelCase keys; None and empty defaults are omitted. Times are in UTC with whole
    seconds, as Kubernetes writes them. Raises TypeError for values without a JSON form, ValueError for a naive time.
    """
    if type(value) in _JSON_SCALARS:
        return value
    if isinstance(value, _LISTS):
        return [to_wire(item) for item in value]
    if isinstance(value, dict):
        return {to_wire(key): to_wire(item) for key, item in value.items()}
    if is_object(value):
        out: Json = {}
        for field in fields_of(type(value)):
            child = getattr(value, field.name)
            if not field.omits(child):
                out[field.wire_name] = to_wire(child)
        return out
    return _write_scalar(value)


def _write_scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return to_wire(value.value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone: use datetime.now(UTC)")
        return format_time(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if is_model(type(value)):
        return write_model(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__qualname__} has no JSON form")


def default_on_wire(field: WireField) -> Any:
    """Return a field's default for the schema; None without a default.

    An object whose fields declare all its defaults is `{}`, so that each default is declared once.
    """
    if not field.has_default or field.omit_empty:
        return None
    default, kind = field.default, type(field.default)
    default_json = to_wire(default)
    if is_object(default) and all(field.has_default for field in fields_of(kind)) and default_json == to_wire(kind()):
        return {}
    return default_json

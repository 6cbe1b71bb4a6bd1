"""Values as JSON: what authors made becomes what clients read."""

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

_AS_IT_IS = frozenset({str, int, float, bool, NoneType})
_LISTS = (list, tuple)


def to_wire(value: Any) -> Any:
    """Return a value as JSON, which shares no list or dict with it.

    Dataclasses become objects with camelCase keys, without fields that are None or empty by default; times are written
    as Kubernetes does, in whole seconds of UTC. Raises TypeError for what JSON cannot say, and ValueError for a time
    without a zone.
    """
    if type(value) in _AS_IT_IS:
        return value
    if isinstance(value, _LISTS):
        return [to_wire(each) for each in value]
    if isinstance(value, dict):
        return {to_wire(key): to_wire(each) for key, each in value.items()}
    if is_object(value):
        out: Json = {}
        for field in fields_of(type(value)):
            child = getattr(value, field.name)
            if not field.leaves_out(child):
                out[field.wire_name] = to_wire(child)
        return out
    return _write_scalar(value)


def _write_scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return to_wire(value.value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone, so that it is no point in time: say datetime.now(UTC)")
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
    raise TypeError(f"{type(value).__qualname__} is nothing that JSON can say")


def default_on_wire(field: WireField) -> Any:
    """Return what a field's default is in the schema; None for none.

    An object whose own fields say all its defaults is `{}`, so that these are said once.
    """
    if not field.has_default or field.is_left_out_when_empty:
        return None
    default, kind = field.default, type(field.default)
    said = to_wire(default)
    if is_object(default) and all(each.has_default for each in fields_of(kind)) and said == to_wire(kind()):
        return {}
    return said

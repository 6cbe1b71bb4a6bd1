"""The forms of values without parts: text, numbers, times, bytes, and those of which only some are allowed."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

from pilothouse.builder.types.form import Form, Place, as_it_is
from pilothouse.extensions.schema.structural import INT_OR_STRING
from pilothouse.machinery.times import parse_time

ZERO_TIME = datetime.min.replace(tzinfo=UTC)
"""Go's zero time, which stands for a time that is missing or that cannot be read."""


def _read_integer(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value


def _read_number(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _read_time(value: Any) -> Any:
    """Schemas let pass more than RFC 3339 has, such as times without a zone, which are taken for UTC."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return parse_time(value) or ZERO_TIME
    with suppress(ValueError):
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return ZERO_TIME


def _read_date(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return date.fromisoformat(value)
    return date.min


def _read_bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    with suppress(binascii.Error, ValueError):
        return base64.b64decode(value)
    return b""


SCALARS: dict[Any, Form] = {
    str: Form({"type": "string"}, as_it_is, str),
    bool: Form({"type": "boolean"}, as_it_is, bool),
    int: Form({"type": "integer", "format": "int64"}, _read_integer, int),
    float: Form({"type": "number", "format": "double"}, _read_number, float),
    datetime: Form({"type": "string", "format": "date-time"}, _read_time, lambda: ZERO_TIME),
    date: Form({"type": "string", "format": "date"}, _read_date, lambda: date.min),
    bytes: Form({"type": "string", "format": "byte"}, _read_bytes, bytes),
}
INT_OR_TEXT = Form({INT_OR_STRING: True}, as_it_is, int)


def literal_form(values: Iterable[Any], at: Place) -> Form:
    """Raises TypeError unless all values are of one JSON type."""
    allowed = list(values)
    kinds = {type(each) for each in allowed}
    form = SCALARS.get(kinds.pop()) if len(kinds) == 1 else None
    if form is None or not isinstance(allowed[0], str | int | float):
        at.refuse(f"the values {allowed} are not all texts, all numbers or all booleans")
    return Form({**form.schema, "enum": allowed}, form.read, form.zero)


def enum_form(cls: type[Enum], at: Place) -> Form:
    """A value that is no member, which the schema refuses, is read as it is; so is the zero value of the members."""
    members: dict[Any, Enum] = {each.value: each for each in cls}
    form = literal_form(members, at)
    zero: Callable[[], Any] = form.zero

    def read(value: Any) -> Any:
        return members.get(value, value) if isinstance(value, str | int | float) else value

    return Form(form.schema, read, lambda: read(zero()))

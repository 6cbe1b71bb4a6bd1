"""The form of a type: its schema, its JSON reader, and its zero value; with the forms of scalars."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any, NoReturn, TypeAlias

from pilothouse.builder.types.fields import Hint, Names
from pilothouse.extensions.schema.structural import INT_OR_STRING
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import parse_time

Read: TypeAlias = Callable[[Any], Any]
"""Converts JSON to a value. JSON of another type than the schema's is returned unchanged, so reading never fails."""


@dataclass(frozen=True, slots=True)
class Form:
    schema: Json
    """Schema, shared between users of the type: copy before changing."""
    read: Read
    zero: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class AnnotationPath:
    """Path of an annotation for error messages, and the classes that contain it."""

    path: str
    inside: tuple[type, ...] = ()
    names: Names | None = None

    def field(self, name: str) -> AnnotationPath:
        return AnnotationPath(f"{self.path}.{name}", self.inside, self.names)

    def items(self) -> AnnotationPath:
        return AnnotationPath(f"{self.path}[]", self.inside, self.names)

    def within(self, cls: type) -> AnnotationPath:
        """Enter a class. Raises TypeError for a recursive class, which has no finite schema."""
        if cls in self.inside:
            self.refuse(f"{cls.__qualname__} contains itself: a recursive type has no schema")
        return AnnotationPath(self.path, (*self.inside, cls), self.names)

    def refuse(self, reason: str) -> NoReturn:
        raise TypeError(f"{self.path}: {reason}")


FormOf: TypeAlias = Callable[[Hint, AnnotationPath], Form]
"""Returns the form of a nested annotation."""


def identity(value: Any) -> Any:
    return value


def none() -> None:
    return None


ZERO_TIME = datetime.min.replace(tzinfo=UTC)
"""Go's zero time; stands for a missing or unreadable time."""


def _read_integer(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value


def _read_number(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _read_time(value: Any) -> Any:
    """Parse a time. Schemas accept more than RFC 3339; a time without a zone is UTC."""
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
    str: Form({"type": "string"}, identity, str),
    bool: Form({"type": "boolean"}, identity, bool),
    int: Form({"type": "integer", "format": "int64"}, _read_integer, int),
    float: Form({"type": "number", "format": "double"}, _read_number, float),
    datetime: Form({"type": "string", "format": "date-time"}, _read_time, lambda: ZERO_TIME),
    date: Form({"type": "string", "format": "date"}, _read_date, lambda: date.min),
    bytes: Form({"type": "string", "format": "byte"}, _read_bytes, bytes),
}
INT_OR_TEXT = Form({INT_OR_STRING: True}, identity, int)


def literal_form(values: Iterable[Any], at: AnnotationPath) -> Form:
    """Return the form of a Literal. Raises TypeError unless all values have the same JSON type."""
    allowed = list(values)
    kinds = {type(value) for value in allowed}
    form = SCALARS.get(kinds.pop()) if len(kinds) == 1 else None
    if form is None or not isinstance(allowed[0], str | int | float):
        at.refuse(f"the values {allowed} are not all strings, all numbers or all booleans")
    return Form({**form.schema, "enum": allowed}, form.read, form.zero)


def enum_form(cls: type[Enum], at: AnnotationPath) -> Form:
    """Return the form of an Enum. A value that is not a member is read unchanged; the schema rejects it."""
    members: dict[Any, Enum] = {member.value: member for member in cls}
    form = literal_form(members, at)
    zero: Callable[[], Any] = form.zero

    def read(value: Any) -> Any:
        return members.get(value, value) if isinstance(value, str | int | float) else value

    return Form(form.schema, read, lambda: read(zero()))

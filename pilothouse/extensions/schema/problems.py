"""Findings of schema checks in the words of kube-openapi, and their conversion to field errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from pilothouse.machinery import field
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import go_value, quote


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """`name`: path of the field; empty for problems without a field."""

    text: str
    name: str | None = None
    type: field.ErrorType = field.ErrorType.INVALID
    value: Any = ""
    limit: Any = None

    def field_error(self, root: field.Path) -> field.FieldError:
        path = root.child(self.name.removeprefix(".")) if self.name and self.name != "." else root
        match self.type:
            case field.ErrorType.REQUIRED:
                return field.required(path)
            case field.ErrorType.NOT_SUPPORTED:
                return field.not_supported(path, printable(self.value), self.limit, plain=True)
            case field.ErrorType.TOO_LONG:
                return field.too_long(path, self.limit)
            case field.ErrorType.TOO_MANY:
                return field.too_many(path, self.value, self.limit)
            case field.ErrorType.TYPE_INVALID:
                return field.type_invalid(path, self.value, self.text)
        return field.invalid(path, printable(self.value), self.text)


def printable(value: Any) -> Any:
    """Return the value in Go's print form: 2.0 as 2, a million as 1e+06, keys sorted."""
    if isinstance(value, float):
        return orjson.Fragment(go_value(value).encode())
    if isinstance(value, dict | list):
        return orjson.Fragment(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
    return value


def wrong_type(name: str, expected: str, actual: str) -> SchemaProblem:
    text = f"{name} in body must be of type {expected}: {quote(actual)}"
    return SchemaProblem(text, name, field.ErrorType.TYPE_INVALID, actual)


def missing(name: str) -> SchemaProblem:
    return SchemaProblem(f"{name} in body is required", name, field.ErrorType.REQUIRED)


def not_in_enum(name: str, value: Any, allowed: Iterable[Any]) -> SchemaProblem:
    values = list(allowed)
    names = [value if isinstance(value, str) else orjson.dumps(value).decode() for value in values]
    text = f"{name} in body should be one of {go_value(values)}"
    return SchemaProblem(text, name, field.ErrorType.NOT_SUPPORTED, value, names)


def longer_than(name: str, limit: int) -> SchemaProblem:
    return SchemaProblem(
        f"{name} in body should be at most {limit} chars long", name, field.ErrorType.TOO_LONG, limit=limit
    )


def shorter_than(name: str, limit: int, value: str) -> SchemaProblem:
    return SchemaProblem(f"{name} in body should be at least {limit} chars long", name, value=value)


def no_match(name: str, pattern: str, value: str) -> SchemaProblem:
    return SchemaProblem(f"{name} in body should match '{pattern}'", name, value=value)


def more_items(name: str, limit: int, count: int) -> SchemaProblem:
    return SchemaProblem(
        f"{name} in body should have at most {limit} items", name, field.ErrorType.TOO_MANY, count, limit
    )


def fewer_items(name: str, limit: int, count: int) -> SchemaProblem:
    return SchemaProblem(f"{name} in body should have at least {limit} items", name, value=count)


def more_properties(name: str, limit: int, count: int) -> SchemaProblem:
    return SchemaProblem(
        f"{name} in body should have at most {limit} properties", name, field.ErrorType.TOO_MANY, count, limit
    )


def fewer_properties(name: str, limit: int, count: int) -> SchemaProblem:
    return SchemaProblem(f"{name} in body should have at least {limit} properties", name, value=count)


def repeated_items(name: str) -> SchemaProblem:
    return SchemaProblem(f"{name} in body shouldn't contain duplicates", name)

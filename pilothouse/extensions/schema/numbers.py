"""Checks of numbers: ranges, multiples, type and format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from pilothouse.extensions.schema.problems import SchemaProblem
from pilothouse.machinery.govalue import go_value
from pilothouse.machinery.objects import Json

Number: TypeAlias = int | float
NumberCheck: TypeAlias = Callable[[Number, str], Iterator[SchemaProblem]]

_MAX_SAFE = 2**53 - 1
_LARGEST_FLOAT32 = 3.4028235677973366e38
_INT64 = range(-(2**63), 2**63)
_INT32 = range(-(2**31), 2**31)
_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def as_go_number(value: Number) -> Number:
    """Return the number as Go holds it: integers beyond 64 bits become floats."""
    return value if isinstance(value, float) or value in _INT64 else float(value)


def is_whole(value: float) -> bool:
    """Return whether a float counts as an integer: within 53 bits and within rounding error of an integer."""
    if not -_MAX_SAFE <= value <= _MAX_SAFE:
        return False
    nearest = float(int(value))
    if value == nearest:
        return True
    return nearest != 0 and abs(value - nearest) / (abs(value) + abs(nearest)) < 1e-9


def number_check(schema: Json) -> NumberCheck | None:
    kind = str(schema.get("type") or "")
    kind = kind if kind in _FORMATS and not schema.get("x-kubernetes-int-or-string") else ""
    form = str(schema.get("format") or "")
    form = form if kind and form in _FORMATS[kind] else ""
    bounds = [_bound(schema, key, kind, form) for key in _BOUNDS if schema.get(key) is not None]
    if not (bounds or kind):
        return None

    def check(value: Number, name: str) -> Iterator[SchemaProblem]:
        if not _fits(value, kind, form):
            yield _misfit("Checked", kind, form, name)
        for bound in bounds:
            yield from bound(value, name)

    return check


def _bound(schema: Json, key: str, kind: str, form: str) -> NumberCheck:
    """Return the check of one bound. A bound that does not fit its type is an error, as upstream."""
    prefix, make = _BOUNDS[key]
    check, fits = make(schema), _fits(schema[key], kind, form)
    if fits:
        return check

    def check_as_float(value: Number, name: str) -> Iterator[SchemaProblem]:
        yield _misfit(prefix, kind, form, name)
        yield from check(float(value), name)

    return check_as_float


def _fits(value: Number, kind: str, form: str) -> bool:
    if kind == "integer":
        allowed = _INT32 if form == "int32" else _INT64
        return float(value).is_integer() and int(value) in allowed
    return form != "float" or abs(value) <= _LARGEST_FLOAT32


def _misfit(prefix: str, kind: str, form: str, name: str) -> SchemaProblem:
    what = f"with format {form}" if form else "(default format)"
    return SchemaProblem(f"{prefix} value must be of type {kind} {what} in {name}")


def _limit_for(value: Number, limit: Number) -> Number:
    """Return the limit in the type of the value; integers compare with the integer part."""
    return float(limit) if isinstance(value, float) else int(limit)


def _maximum(schema: Json) -> NumberCheck:
    maximum, exclusive = schema["maximum"], bool(schema.get("exclusiveMaximum"))
    words = "less than" if exclusive else "less than or equal to"

    def check(value: Number, name: str) -> Iterator[SchemaProblem]:
        limit = _limit_for(value, maximum)
        if value > limit or (exclusive and value == limit):
            yield SchemaProblem(f"{name} in body should be {words} {go_value(limit)}", name, value=value)

    return check


def _minimum(schema: Json) -> NumberCheck:
    minimum, exclusive = schema["minimum"], bool(schema.get("exclusiveMinimum"))
    words = "greater than" if exclusive else "greater than or equal to"

    def check(value: Number, name: str) -> Iterator[SchemaProblem]:
        limit = _limit_for(value, minimum)
        if value < limit or (exclusive and value == limit):
            yield SchemaProblem(f"{name} in body should be {words} {go_value(limit)}", name, value=value)

    return check


def _multiple_of(schema: Json) -> NumberCheck:
    multiple = schema["multipleOf"]

    def check(value: Number, name: str) -> Iterator[SchemaProblem]:
        factor = _limit_for(value, multiple)
        if factor <= 0:
            text = f"factor MultipleOf declared for {name} must be positive: {go_value(factor)}"
            yield SchemaProblem(text, name, value=factor)
        elif not _is_multiple(value, factor):
            yield SchemaProblem(f"{name} in body should be a multiple of {go_value(factor)}", name, value=value)

    return check


def _is_multiple(value: Number, factor: Number) -> bool:
    if isinstance(value, int):
        return value % factor == 0
    return is_whole(1 / factor * value if factor < 1 else value / factor)


_BOUNDS: dict[str, tuple[str, Callable[[Json], NumberCheck]]] = {
    "multipleOf": ("MultipleOf", _multiple_of),
    "minimum": ("Minimum boundary", _minimum),
    "maximum": ("Maximum boundary", _maximum),
}
"""In the order of reporting."""

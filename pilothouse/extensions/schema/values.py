"""Checks of scalar values: type, enum, length, pattern, format and range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from pilothouse.extensions.schema import problems
from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.problems import SchemaProblem
from pilothouse.machinery import version_rules
from pilothouse.machinery.cel.patterns import matcher
from pilothouse.machinery.gofmt import go_value
from pilothouse.machinery.objects import Json, deep_equal
from pilothouse.machinery.validation.formats import Format, format_check

Check: TypeAlias = Callable[[Any, str, Link | None, list[SchemaProblem]], int]
"""(value, path, correlated old value, problems) → number of passed checks.

Problems are appended. If no alternative of anyOf or oneOf fits, upstream reports the alternative with the most passed
checks, so every check counts.
"""
Compile: TypeAlias = Callable[[Json], Check]

_JSON_TYPES = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
_GO_FORMATS = {int: "int64", float: "float64"}


def nothing_to_check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
    return 0


# Most schema nodes constrain few types. All other types share these functions, since a schema has thousands of nodes.


def one_passes(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
    return 1


def two_pass(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
    return 2


def types_of(schema: Json) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def supported_format(schema: Json) -> str:
    """Return the format; "" if the schema's type does not support it."""
    types, name = types_of(schema), schema.get("format") or ""
    if not types or types == ("string",):
        return name if format_check(name) else ""
    allowed = {"integer": ("int32", "int64"), "number": ("float", "double")}
    return name if len(types) == 1 and name in allowed.get(types[0], ()) else ""


def type_check(schema: Json) -> Check | None:
    types, form, nullable = types_of(schema), supported_format(schema), bool(schema.get("nullable"))
    expected = ",".join(types)
    if not types and not form:
        return None
    free_form = bool(form) and not {"number", "integer"} & set(types)

    def check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        if value is None:
            if not types or nullable:
                return 1
            findings.append(problems.wrong_type(name, expected, "null"))
            return 0
        kind = _JSON_TYPES[type(value)]
        fits = kind in types or (kind == "integer" and "number" in types)
        fits = fits or (kind == "number" and "integer" in types and is_whole(value))
        if fits or (free_form and kind in ("string", "array")):
            return 2
        if form and kind not in ("string", "array"):
            findings.append(problems.wrong_type(name, form, _GO_FORMATS.get(type(value), "")))
        else:
            findings.append(problems.wrong_type(name, expected, kind))
        return 1

    return check


def enum_check(schema: Json) -> Check:
    allowed = schema.get("enum") or []
    if not allowed:
        return nothing_to_check

    def check(value: Any, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        if not any(_is_enum_value(value, option) for option in allowed):
            findings.append(problems.not_in_enum(name, value, allowed))
        return 0

    return check


def _is_enum_value(value: Any, allowed: Any) -> bool:
    """Compare with an enum value. Numbers are converted to the type of the enum value; null never matches."""
    if isinstance(value, int | float) and isinstance(allowed, int | float):
        if isinstance(value, bool) or isinstance(allowed, bool):
            return value is allowed
        return type(allowed)(value) == allowed
    return value is not None and deep_equal(value, allowed)


def string_check(schema: Json) -> Check:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern, form = schema.get("pattern") or "", supported_format(schema)
    if longest is None and shortest is None and not pattern and not form:
        return one_passes
    is_of_form: Format | None = format_check(form) if form else None
    matches = matcher(pattern) if pattern else None

    def check(value: str, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        if longest is not None and len(value) > longest:
            findings.append(problems.longer_than(name, longest))
        elif shortest is not None and len(value) < shortest:
            findings.append(problems.shorter_than(name, shortest, value))
        elif matches is not None and not matches(value):
            findings.append(problems.no_match(name, pattern, value))
        if is_of_form is not None and not is_of_form(value):
            findings.append(problems.wrong_type(name, form, value))
        return 1 + (is_of_form is not None)

    return check


def number_step(schema: Json) -> Check:
    constraints = number_check(schema)
    if constraints is None:
        return two_pass

    def check(value: int | float, name: str, link: Link | None, findings: list[SchemaProblem]) -> int:
        findings.extend(constraints(value, name))
        return 2

    return check


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
    form = form if kind and form in _FORMATS[kind] and version_rules.holds("NumericFormats") else ""
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
    description = f"with format {form}" if form else "(default format)"
    return SchemaProblem(f"{prefix} value must be of type {kind} {description} in {name}")


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

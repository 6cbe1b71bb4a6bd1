"""The checks of values that have no parts: their type, enum, length, pattern, format and range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.extensions.schema import problems
from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.numbers import is_whole, number_check
from pilothouse.extensions.schema.problems import SchemaProblem
from pilothouse.machinery.cel.patterns import matcher
from pilothouse.machinery.equality import deep_equal
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.formats import Format, format_check

Check: TypeAlias = Callable[[Any, str, Link | None, list[SchemaProblem]], int]
"""(value, where it is, what it was, found problems) → the number of checks that passed.

Problems are appended. Where one of several schemas must fit and none does, upstream shows the problems of the
one with which the most checks passed, so that each check answers its part of the number."""
Compile: TypeAlias = Callable[[Json], Check]

_JSON_TYPES = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
_GO_FORMATS = {int: "int64", float: "float64"}


def nothing_to_check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
    return 0


# Most places constrain values of few types. The others share these, since a schema has thousands of places.


def one_passes(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
    return 1


def two_pass(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
    return 2


def types_of(schema: Json) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def supported_format(schema: Json) -> str:
    """The format, unless the schema's type has none of this name."""
    types, name = types_of(schema), schema.get("format") or ""
    if not types or types == ("string",):
        return name if format_check(name) else ""
    allowed = {"integer": ("int32", "int64"), "number": ("float", "double")}
    return name if len(types) == 1 and name in allowed.get(types[0], ()) else ""


def type_check(schema: Json) -> Check | None:
    types, form, nullable = types_of(schema), supported_format(schema), bool(schema.get("nullable"))
    wanted = ",".join(types)
    if not types and not form:
        return None
    free_form = bool(form) and not {"number", "integer"} & set(types)

    def check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        if value is None:
            if not types or nullable:
                return 1
            found.append(problems.wrong_type(name, wanted, "null"))
            return 0
        kind = _JSON_TYPES[type(value)]
        fits = kind in types or (kind == "integer" and "number" in types)
        fits = fits or (kind == "number" and "integer" in types and is_whole(value))
        if fits or (free_form and kind in ("string", "array")):
            return 2
        if form and kind not in ("string", "array"):
            found.append(problems.wrong_type(name, form, _GO_FORMATS.get(type(value), "")))
        else:
            found.append(problems.wrong_type(name, wanted, kind))
        return 1

    return check


def enum_check(schema: Json) -> Check:
    allowed = schema.get("enum") or []
    if not allowed:
        return nothing_to_check

    def check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        if not any(_is_enum_value(value, each) for each in allowed):
            found.append(problems.not_in_enum(name, value, allowed))
        return 0

    return check


def _is_enum_value(value: Any, allowed: Any) -> bool:
    """Numbers are converted to the type of the listed one before they are compared, and null is never listed."""
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

    def check(value: str, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        if longest is not None and len(value) > longest:
            found.append(problems.longer_than(name, longest))
        elif shortest is not None and len(value) < shortest:
            found.append(problems.shorter_than(name, shortest, value))
        elif matches is not None and not matches(value):
            found.append(problems.no_match(name, pattern, value))
        if is_of_form is not None and not is_of_form(value):
            found.append(problems.wrong_type(name, form, value))
        return 1 + (is_of_form is not None)

    return check


def number_step(schema: Json) -> Check:
    constraints = number_check(schema)
    if constraints is None:
        return two_pass

    def check(value: int | float, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        found.extend(constraints(value, name))
        return 2

    return check

"""Checks of values against a schema, compiled once per schema node."""

from __future__ import annotations

from typing import Any

from pilothouse.extensions.schema.alternatives import alternatives_check
from pilothouse.extensions.schema.containers import check_part, items_check, properties_check
from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.numbers import as_go_number
from pilothouse.extensions.schema.problems import SchemaProblem
from pilothouse.extensions.schema.values import (
    Check,
    enum_check,
    nothing_to_check,
    number_step,
    string_check,
    type_check,
)
from pilothouse.machinery.field import Errors, Path
from pilothouse.machinery.objects import Json


def run_check(check: Check, value: Any, *, path: Path, link: Link | None = None) -> Errors:
    """Yield the errors without duplicates. The old value is examined only if there are errors."""
    found: list[SchemaProblem] = []
    check(value, "", None, found)
    if found and link is not None:
        found = []
        check_part(check, value, "", link, found)
    seen: set[str] = set()
    for problem in found:
        if problem.text not in seen:
            seen.add(problem.text)
            yield problem.field_error(path)


def compile_check(schema: Json) -> Check:
    """Compile the check of a schema and its nested schemas."""
    of_type, of_enum, alternatives = type_check(schema), enum_check(schema), alternatives_check(schema, compile_check)
    by_type: dict[type, Check] = {
        str: string_check(schema),
        int: number_step(schema),
        float: number_step(schema),
        list: items_check(schema, compile_check),
        dict: properties_check(schema, compile_check),
        bool: nothing_to_check,
    }

    def check(value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            value = as_go_number(value)
        passed = of_type(value, name, link, found) if of_type else 0
        if value is None:
            of_enum(value, name, link, found)
            return passed
        if alternatives is not None:
            passed += alternatives(value, name, link, found)
        passed += by_type[type(value)](value, name, link, found)
        return passed + of_enum(value, name, link, found) + 4

    return check

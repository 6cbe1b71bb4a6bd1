"""Selectors of devices: expressions that are true of the devices that will do."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kube.resource.limited_collections import validate_slice
from pilothouse.machinery.field import Errors, Path, internal, invalid, required, too_long
from pilothouse.machinery.objects import Json, text

MAX_SELECTORS = 32
MAX_EXPRESSION = 10 * 1024


def validate_selectors(selectors: Sequence[Json], path: Path) -> Errors:
    return validate_slice(selectors, MAX_SELECTORS, _validate_selector, path)


def _validate_selector(selector: Json, path: Path) -> Errors:
    cel = selector.get("cel")
    if cel is None:
        yield required(path.child("cel"))
        return
    expression, where = text(cel, "expression"), path.child("cel", "expression")
    if len(expression.encode()) > MAX_EXPRESSION:
        yield too_long(where, MAX_EXPRESSION)
        return
    yield from _validate_expression(expression, where)


def _validate_expression(expression: str, where: Path) -> Errors:
    # Imported with the first expression: a start needs none.
    from pilothouse.machinery.cel.devices import compile_device_selector
    from pilothouse.machinery.cel.environment import CompilationFailed
    from pilothouse.machinery.cel.program import Program, ProgramFailed

    try:
        compiled = compile_device_selector(expression)
    except CompilationFailed as error:
        yield invalid(where, expression, f"compilation failed: {error}")
        return
    if compiled.type not in ("bool", "any"):
        yield invalid(where, expression, f"must evaluate to bool or the unknown type, not {compiled.type}")
        return
    try:
        Program(compiled.program)
    except ProgramFailed as error:
        yield internal(where, f"program instantiation failed: {error}")

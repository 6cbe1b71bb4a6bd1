"""The status of a validating policy: what its type checker found."""

from __future__ import annotations

from pilothouse.machinery.field import Errors, Path, required
from pilothouse.machinery.nested_fields import items, text
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.conditions import validate_conditions


def validate_policy_status(status: Json, path: Path) -> Errors:
    warnings = path.child("typeChecking", "expressionWarnings")
    for position, warning in enumerate(items(status, "typeChecking", "expressionWarnings")):
        if not text(warning, "warning"):
            yield required(warnings.index(position).child("warning"))
        if not text(warning, "fieldRef").strip():
            yield required(warnings.index(position).child("fieldRef"))
    yield from validate_conditions(status.get("conditions"), path.child("conditions"))

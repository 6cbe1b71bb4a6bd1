"""Validation of metav1.Condition, the shared type of status.conditions."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, Path, duplicate, invalid, not_supported, required, too_long
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import validate_label_name
from pilothouse.machinery.validation.pattern_format import PatternFormat

MAX_REASON_LENGTH = 1024
MAX_MESSAGE_LENGTH = 32 * 1024

_is_reason = PatternFormat(
    "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def validate_conditions(conditions: Iterable[Json] | None, path: Path) -> Errors:
    seen: set[str] = set()
    for position, condition in enumerate(conditions or ()):
        kind = condition.get("type") or ""
        if kind in seen:
            yield duplicate(path.index(position).child("type"), kind)
        seen.add(kind)
        yield from validate_condition(condition, path.index(position))


def validate_condition(condition: Json, path: Path) -> Errors:
    kind = condition.get("type") or ""
    if not kind and version_rules.holds("DeclaredValidation"):
        yield required(path.child("type"), "is required")
    else:
        yield from validate_label_name(kind, path.child("type"))
    if (status := condition.get("status") or "") not in ("True", "False", "Unknown"):
        yield not_supported(path.child("status"), status, ("False", "True", "Unknown"))
    if (observed := condition.get("observedGeneration") or 0) < 0:
        yield invalid(path.child("observedGeneration"), observed, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        yield required(path.child("lastTransitionTime"))
    yield from _validate_reason(condition.get("reason") or "", path.child("reason"))
    if len((condition.get("message") or "").encode()) > MAX_MESSAGE_LENGTH:
        yield too_long(path.child("message"), MAX_MESSAGE_LENGTH)


def _validate_reason(reason: str, path: Path) -> Errors:
    if not reason:
        yield required(path)
        return
    for message in _is_reason(reason):
        yield invalid(path, reason, message)
    if len(reason) > MAX_REASON_LENGTH:
        yield too_long(path, MAX_REASON_LENGTH)

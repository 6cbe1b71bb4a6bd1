"""Immutable fields, compared with upstream's semantic equality."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, Path, declared, invalid
from pilothouse.machinery.schema.lists_and_maps import EmptyMap
from pilothouse.machinery.schema.raw_json import RawObject

FIELD_IMMUTABLE = "field is immutable"


def validate_immutable_field(new: Any, old: Any, path: Path) -> Errors:
    if not (_is_empty(new) and _is_empty(old)) and not semantically_equal(new, old):
        yield invalid(path, new, FIELD_IMMUTABLE)


def validate_declared_immutable(new: Any, old: Any, path: Path, *, place: int = 1) -> Errors:
    """Validate a field that upstream's types declare as immutable since 1.37: messages then show no value."""
    for error in validate_immutable_field(new, old, path):
        shown = None if version_rules.holds("DeclaredValidation") else error.value
        yield declared(invalid(path, shown, FIELD_IMMUTABLE), FIELD_IMMUTABLE, place=place)


def semantically_equal(a: Any, b: Any) -> bool:
    """Compare values; a missing value, null, an empty list and an empty map are equal.

    An empty struct differs from a missing struct, because it has a meaning: `emptyDir: {}`. Raw values are compared by
    their text.
    """
    if isinstance(a, RawObject) or isinstance(b, RawObject):
        return bool(a == b)
    if a is None or b is None:
        return _is_nothing(a) and _is_nothing(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return all(semantically_equal(a.get(key), b.get(key)) for key in a.keys() | b.keys())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(semantically_equal, a, b))
    return bool(a == b)


def _is_nothing(value: Any) -> bool:
    return value is None or (not value and isinstance(value, list | EmptyMap))


def _is_empty(value: Any) -> bool:
    return value is None or value in ([], {})

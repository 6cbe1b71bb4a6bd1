"""Directives of a strategic merge patch, and their removal from values."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.govalue import go_type, go_value
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.errors import MalformedPatch, PatchFailed

PATCH = "$patch"
DELETE = "delete"
REPLACE = "replace"
MERGE = "merge"
RETAIN_KEYS = "$retainKeys"
SET_ELEMENT_ORDER = "$setElementOrder"
DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList"

_MALFORMED = {
    SET_ELEMENT_ORDER: "invalid patch format of setElementOrder list",
    DELETE_FROM_PRIMITIVE_LIST: "invalid patch format of primitive list",
}


def is_directive(value: Any) -> bool:
    """Report whether the value is an object with `$patch`."""
    return isinstance(value, dict) and PATCH in value


def is_parallel_list(key: str) -> bool:
    return key.startswith((SET_ELEMENT_ORDER, DELETE_FROM_PRIMITIVE_LIST))


def field_of(key: str, directive: str) -> str:
    """Return the field of `$directive/field`. Raises MalformedPatch."""
    prefix, slash, field = key.partition("/")
    if not slash or prefix != directive:
        raise MalformedPatch(_MALFORMED[directive])
    return field


def cleaned(value: Any, *, keep_nulls: bool) -> Any:
    """Return the value without directive objects, and without null members unless `keep_nulls`."""
    if isinstance(value, dict):
        return {
            key: cleaned(part, keep_nulls=keep_nulls)
            for key, part in value.items()
            if not is_directive(part) and (keep_nulls or part is not None)
        }
    if isinstance(value, list):
        return [cleaned(part, keep_nulls=keep_nulls) for part in value if not is_directive(part)]
    return value


def bad_type(expected: Any, value: Any) -> PatchFailed:
    actual = "%!s(<nil>)" if value is None else go_type(value)
    return PatchFailed(f"expected a {go_type(expected)}, but received a {actual}")


def no_merge_key(element: Json, merge_key: str) -> PatchFailed:
    return PatchFailed(f"map: {go_value(element)} does not contain declared merge key: {merge_key}")

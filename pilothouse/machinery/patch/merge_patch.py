"""JSON merge patch (RFC 7396) with kube-apiserver's semantics, and operations on JSON values in patches.

    {"a": {"b": 1, "c": 2}}  patched with  {"a": {"b": null}, "e": {"f": null}}  →  {"a": {"c": 2}, "e": {}}

Nulls in added values are dropped at every depth, including inside lists, except in a list that replaces an object.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pilothouse.machinery.gofmt import not_an_object
from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.interface import MalformedPatch, PatchFailed

MALFORMED = "Invalid JSON Patch"


def check(patch: Any, *, strict: bool = True) -> None:
    """Raise MalformedPatch unless the parsed body is a merge patch of an object."""
    if strict and patch is not None and not isinstance(patch, dict):
        raise MalformedPatch(f"error decoding patch: {not_an_object(patch)}")
    if not isinstance(patch, (dict, list)):
        raise MalformedPatch(MALFORMED)
    check_depth(patch)


def apply(document: Json, patch: Any) -> Any:
    """Return the patched document; consumes `document`. A list replaces the whole document.

    Keys of modified objects and of added values are sorted, as upstream. Never fails for a patch that passed `check`.
    """
    fresh = copied(patch)
    if isinstance(fresh, dict):
        _merge(document, fresh)
        return document
    return _without_nulls(fresh)


def _merge(document: Json, patch: Json) -> None:
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
            continue
        current = document.get(key)
        if not isinstance(current, dict):
            document[key] = _without_nulls(value)
        elif isinstance(value, dict):
            _merge(current, value)
        else:
            document[key] = value
    sort_keys(document)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(value[key]) for key in sorted(value) if value[key] is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


MAX_DEPTH = 200
"""Maximum nesting of a patch: deeper than any type, and within the stack limit."""


def copied(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a deep copy. Raises MalformedPatch beyond the maximum depth."""
    if not isinstance(value, (dict, list)):
        return value
    if not depth:
        raise MalformedPatch("exceeded max depth")
    if isinstance(value, dict):
        return {key: copied(part, depth - 1) for key, part in value.items()}
    return [copied(part, depth - 1) for part in value]


def check_depth(value: Any) -> None:
    """Raises MalformedPatch beyond the maximum depth."""
    copied(value)


def sort_keys(document: Json) -> None:
    """Sort keys in place. Go prints maps in this order, and errors follow the printed order."""
    members = sorted(document.items())
    document.clear()
    document.update(members)


def identity(value: Any) -> Hashable:
    """Return a hashable identity of a scalar; equal exactly when `deep_equal` holds."""
    if isinstance(value, (dict, list)):
        raise PatchFailed("an object or a list cannot identify a list element")
    return (type(value), value)

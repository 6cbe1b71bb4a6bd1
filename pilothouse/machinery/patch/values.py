"""JSON values in patches: copies, key order and identity with Go's distinctions."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pilothouse.machinery.objects import Json
from pilothouse.machinery.patch.errors import MalformedPatch, PatchFailed

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

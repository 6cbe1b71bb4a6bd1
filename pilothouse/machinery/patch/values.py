"""JSON values as patches need them: copied whole, and found by what they are."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pilothouse.machinery.patch.errors import MalformedPatch, PatchFailed

MAX_DEPTH = 200
"""How deep a patch may nest: far beyond any type, and safely within the stack."""


def copied(value: Any, depth: int = MAX_DEPTH) -> Any:
    """The value with all its parts. Raises MalformedPatch when it nests too deep to be worked on."""
    if not isinstance(value, (dict, list)):
        return value
    if not depth:
        raise MalformedPatch("exceeded max depth")
    if isinstance(value, dict):
        return {key: copied(part, depth - 1) for key, part in value.items()}
    return [copied(part, depth - 1) for part in value]


def check_depth(value: Any) -> None:
    """Raises MalformedPatch for what `copied` would refuse."""
    copied(value)


def identity(value: Any) -> Hashable:
    """Return a key for a scalar in sets and dicts: keys are equal just when their scalars are `exactly_equal`."""
    if isinstance(value, (dict, list)):
        raise PatchFailed("an object or a list can not stand where a plain value identifies an element")
    return (type(value), value)

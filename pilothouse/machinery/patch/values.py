"""JSON values as patches need them: copied, compared and ordered with the distinctions that Go makes."""

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


def same(a: Any, b: Any) -> bool:
    """Equality that tells 1 from 1.0 and from true."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(part, b[key]) for key, part in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def identity(value: Any) -> Hashable:
    """Return a key for a scalar in sets and dicts: two keys are equal just when `same` holds for their scalars."""
    if isinstance(value, (dict, list)):
        raise PatchFailed("an object or a list can not stand where a plain value identifies an element")
    return (type(value), value)

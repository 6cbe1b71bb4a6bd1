"""JSON values as patches need them: copied, and told apart with the distinctions that Go makes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pilothouse.machinery.objects import Json
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


def sort_keys(document: Json) -> None:
    """In place. Go prints a map so, and its order is that in which the members are then read and complained of."""
    members = sorted(document.items())
    document.clear()
    document.update(members)


def identity(value: Any) -> Hashable:
    """What a scalar is found by in a set or a dict: equal just when `deep_equal` holds."""
    if isinstance(value, (dict, list)):
        raise PatchFailed("an object or a list can not stand where a plain value identifies an element")
    return (type(value), value)

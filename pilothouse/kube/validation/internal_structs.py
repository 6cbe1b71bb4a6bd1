"""Values as upstream prints its internal structs in messages: Go's field names, in order, with nothing left out.

shown = struct(Type=TEXT, Limits=pointer(struct(APIGroups=ANY)))
shown({"type": "x"})  → {"Type": "x", "Limits": None}
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

Shape: TypeAlias = Callable[[Any], Any]
"""Converts the JSON form of a field, or None, to its printed form."""

_CONDITION = ("type", "status", "observedGeneration", "lastTransitionTime", "reason", "message")
_LEADING_CAPITALS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]")


def _plain(zero: Any) -> Shape:
    return lambda value: zero if value is None else value


TEXT, NUMBER, FLAG, ANY = _plain(""), _plain(0), _plain(False), _plain(None)


def struct(**fields: Shape) -> Shape:
    # JSON names: APIGroups → apiGroups, Type → type.
    named = [
        (name, _LEADING_CAPITALS.sub(lambda match: match[0].lower(), name, count=1), shape)
        for name, shape in fields.items()
    ]

    def show(value: Any) -> Any:
        return {name: shape((value or {}).get(key)) for name, key, shape in named}

    return show


def pointer(shape: Shape) -> Shape:
    return lambda value: None if value is None else shape(value)


def slice_of(shape: Shape) -> Shape:
    return lambda values: None if values is None else [shape(value) for value in values]


def condition(value: Any) -> Any:
    """Format a metav1.Condition."""
    return {name: value[name] for name in _CONDITION if name in value}

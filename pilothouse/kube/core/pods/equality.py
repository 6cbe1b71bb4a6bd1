"""Semantic equality of specs: quantities compare by value."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.immutable import semantically_equal

_AMOUNTS = frozenset({"limits", "requests", "overhead"})
_AMOUNT = frozenset({"sizeLimit", "divisor"})


def same_spec(one: Json | None, other: Json | None) -> bool:
    return semantically_equal(one, other) or semantically_equal(_comparable(one), _comparable(other))


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _comparable_field(name, field) for name, field in value.items()}


def _comparable_field(name: str, value: Any) -> Any:
    if name in _AMOUNTS and isinstance(value, dict):
        return {resource: parse_quantity(text) for resource, text in value.items()}
    if name in _AMOUNT and isinstance(value, str):
        return parse_quantity(value)
    return _comparable(value)

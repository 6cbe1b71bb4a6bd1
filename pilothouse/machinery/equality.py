"""Equality of JSON values, of which Python's own makes too many: there True is 1 and 1 is 1.0."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.checkpoints import checkpoint


def deep_equal(a: Any, b: Any) -> bool:
    """Whether the values are equal as Go's reflect.DeepEqual has it: neither true nor 1.0 is 1."""
    checkpoint()
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(deep_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(deep_equal, a, b))
    return bool(a == b)


def json_equal(a: Any, b: Any) -> bool:
    """Whether the values are equal as JSON: 1 is 1.0, but true is not 1."""
    if a != b:
        return False
    if isinstance(a, dict):
        return all(json_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return all(map(json_equal, a, b))
    return isinstance(a, bool) == isinstance(b, bool)

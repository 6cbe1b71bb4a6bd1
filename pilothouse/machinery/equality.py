"""Equality of JSON values. Python's `==` is too lenient: True == 1 == 1.0."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.checkpoints import checkpoint


def deep_equal(a: Any, b: Any) -> bool:
    """Report equality as Go's reflect.DeepEqual: true, 1 and 1.0 are all different."""
    checkpoint()
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(deep_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(deep_equal, a, b))
    return bool(a == b)


def json_equal(a: Any, b: Any) -> bool:
    """Report equality as JSON: 1 equals 1.0, but true does not equal 1."""
    if a != b:
        return False
    if isinstance(a, dict):
        return all(json_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return all(map(json_equal, a, b))
    return isinstance(a, bool) == isinstance(b, bool)

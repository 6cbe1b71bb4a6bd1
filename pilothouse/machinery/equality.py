"""Equality of JSON values, with the distinctions that Python does not make: to it, true is 1 and 1 is 1.0."""

from __future__ import annotations

from typing import Any


def exactly_equal(a: Any, b: Any) -> bool:
    """Whether two values are equal as Go has it, where true is not 1 and 1 is not 1.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(exactly_equal(child, b[key]) for key, child in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(exactly_equal, a, b))
    return bool(a == b)


def equal_as_json(a: Any, b: Any) -> bool:
    """Whether two values are equal as JSON, where 1 is 1.0, but true is not 1."""
    if a != b:
        return False
    if isinstance(a, dict):
        return all(equal_as_json(child, b[key]) for key, child in a.items())
    if isinstance(a, list):
        return all(map(equal_as_json, a, b))
    return isinstance(a, bool) == isinstance(b, bool)

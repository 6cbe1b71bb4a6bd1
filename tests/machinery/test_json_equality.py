"""Equality of JSON values tells apart what Python's does not."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.objects import deep_equal, json_equal


@pytest.mark.parametrize(
    ("a", "b", "as_go", "as_json"),
    [
        (1, 1, True, True),
        (1, 1.0, False, True),
        (1, True, False, False),
        (0, False, False, False),
        ("1", 1, False, False),
        (None, False, False, False),
        ([1, {"a": [True]}], [1, {"a": [True]}], True, True),
        ([1, {"a": [True]}], [1, {"a": [1]}], False, False),
        ({"a": 1}, {"a": 1.0}, False, True),
        ({"a": 1}, {"a": 1, "b": None}, False, False),
        ([1], [1, 1], False, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, True),
    ],
)
def test_numbers_and_booleans_are_told_apart_at_every_depth(a: Any, b: Any, as_go: bool, as_json: bool) -> None:
    assert (deep_equal(a, b), deep_equal(b, a)) == (as_go, as_go)
    assert (json_equal(a, b), json_equal(b, a)) == (as_json, as_json)

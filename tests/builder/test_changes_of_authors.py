"""What a hook changed is done to the object, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.builder.types.wire import apply_changes


@pytest.mark.parametrize(
    ("obj", "before", "after", "expected"),
    [
        ({"a": 0, "unknown": 1}, {}, {"b": 1}, {"a": 0, "unknown": 1, "b": 1}),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}, {"b": 2}, {"b": 2}),
        ({"a": {"b": 1, "unknown": 2}}, {"a": {"b": 1}}, {"a": {"b": 3}}, {"a": {"b": 3, "unknown": 2}}),
        ({"a": {"unknown": 2}}, {}, {"a": {"b": 3}}, {"a": {"b": 3, "unknown": 2}}),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, {}, {}),
        ({"a": [1]}, {"a": [1]}, {"a": [2, 3]}, {"a": [2, 3]}),
        ({"a": None}, {}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({}, {"a": 1}, {}, {}),
        ({"a": 1}, {"a": 1}, {"a": True}, {"a": True}),
    ],
    ids=str,
)
def test_only_what_changed_is_changed(obj: Any, before: Any, after: Any, expected: Any) -> None:
    apply_changes(obj, before, after)
    assert obj == expected
    assert {key: type(value) for key, value in obj.items()} == {key: type(value) for key, value in expected.items()}

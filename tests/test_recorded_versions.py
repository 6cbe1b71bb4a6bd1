"""Recordings of other minor versions are edits of the recordings of v1.36.4."""

from __future__ import annotations

import random
from typing import Any

import pytest
from json_edits import edited, edits_between

Numbers = random.Random


def _document(numbers: Numbers, depth: int = 0) -> Any:
    form = numbers.randrange(6 if depth < 4 else 4)
    if form == 4:
        return [_document(numbers, depth + 1) for _ in range(numbers.randrange(6))]
    if form == 5:
        return {key: _document(numbers, depth + 1) for key in "abcd" if numbers.random() < 0.6}
    return [None, True, numbers.randrange(3), numbers.choice("xyz")][form]


@pytest.mark.parametrize("seed", range(200))
def test_edits_between_two_documents_lead_from_one_to_the_other(seed: int) -> None:
    numbers = Numbers(seed)
    old, new = _document(numbers), _document(numbers)
    before = repr(old)
    assert repr(edited(old, edits_between(old, new))) == repr(new) or edited(old, edits_between(old, new)) == new
    assert repr(old) == before


@pytest.mark.parametrize(
    ("old", "new", "edits"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"a": 3}, [[["b"], "remove"], [["a"], "set", 3]]),
        ([1, 2, 3, 4], [1, 4], [[[], "splice", 1, 2, []]]),
        ([{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 3}], [[[1, "b"], "set", 3]]),
        (1, True, [[[], "set", True]]),
    ],
)
def test_edits_contain_only_differences(old: Any, new: Any, edits: Any) -> None:
    assert list(edits_between(old, new)) == edits

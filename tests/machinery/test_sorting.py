"""Sorting in pieces gives what sorting gives."""

from __future__ import annotations

import random

import pytest

from pilothouse.machinery.selectors.label_parser import sorted_in_pieces


@pytest.mark.parametrize("count", [0, 1, 10_000, 10_001, 45_678])
def test_sorting_in_pieces_is_stable_and_equal_to_sorted(count: int) -> None:
    chance = random.Random(count)
    items = [(chance.choice("abc"), at) for at in range(count)]
    assert sorted_in_pieces(items, key=lambda item: item[0]) == sorted(items, key=lambda item: item[0])

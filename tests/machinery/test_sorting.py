"""Sorting in pieces gives what sorting gives."""

from __future__ import annotations

import random

import pytest

from pilothouse.machinery.selectors.label_parser import sorted_in_pieces


@pytest.mark.parametrize("count", [0, 1, 10_000, 10_001, 45_678])
def test_pieces_are_sorted_as_the_whole_is_and_what_is_equal_keeps_its_order(count: int) -> None:
    chance = random.Random(count)
    items = [(chance.choice("abc"), at) for at in range(count)]
    assert sorted_in_pieces(items, key=lambda item: item[0]) == sorted(items, key=lambda item: item[0])

"""Sets of completion indexes, and how they are written."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.controllers.job.indexes import indexes_of, parse_indexes

NUMBERS = st.sets(st.integers(0, 40))
ANY_MACHINE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), ""),
        ((4,), "4"),
        ((0, 1), "0,1"),
        ((0, 1, 2), "0-2"),
        ((1, 3, 4, 6, 7, 8), "1,3,4,6-8"),
    ],
)
def test_runs_of_three_are_intervals(numbers: tuple[int, ...], text: str) -> None:
    assert str(indexes_of(numbers)) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [("1,x,3", "1,3"), ("2-x,3", "3"), ("8-12", "8,9"), ("3,10,11", "3"), ("3,4", "3,4"), ("3,4,5", "3-5"), ("", "")],
)
def test_invalid_or_excessive_indexes_are_skipped(text: str, kept: str) -> None:
    assert str(parse_indexes(text, 10)) == kept


@ANY_MACHINE
@given(NUMBERS, NUMBERS, st.integers(0, 45))
def test_they_are_sets(one: set[int], other: set[int], limit: int) -> None:
    a, b = indexes_of(one), indexes_of(other)
    assert len(a) == len(one)
    assert {number for number in range(-1, 45) if number in a} == one
    assert (a | b) == indexes_of(one | other)
    assert (a & b) == indexes_of(one & other)
    assert [*a.missing(limit)] == [number for number in range(limit) if number not in one]


@ANY_MACHINE
@given(NUMBERS)
def test_indexes_round_trip_through_text(numbers: set[int]) -> None:
    indexes = indexes_of(numbers)
    assert parse_indexes(str(indexes), 41) == indexes

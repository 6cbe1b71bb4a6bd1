"""Lists of indexes, checked against plain sets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.kube.batch.job_policies import IndexesError, count_indexes, first_overlap

MANY = 40
index_sets = st.frozensets(st.integers(0, MANY - 1))


def written(indexes: frozenset[int]) -> str:
    """The shortest list: runs of two or more are intervals."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


@settings(max_examples=60)
@given(index_sets)
def test_a_list_has_as_many_indexes_as_its_set(indexes: frozenset[int]) -> None:
    assert count_indexes(written(indexes), MANY) == len(indexes)


@settings(max_examples=100)
@given(index_sets, index_sets)
def test_lists_overlap_where_their_sets_do(one: frozenset[int], other: frozenset[int]) -> None:
    common = min(one & other, default=None)
    assert first_overlap(written(one), written(other), MANY) == common


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("5", 'too large index: "5"'),
        ("0-5", 'too large index: "5"'),
        ("x", 'cannot convert string to integer for index: "x"'),
        ("1,", 'cannot convert string to integer for index: ""'),
        ("1-2-3", 'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts'),
        ("3-2", "non-increasing order, previous: 3, current: 2"),
        ("2-2", "non-increasing order, previous: 2, current: 2"),
        ("3,1", "non-increasing order, previous: 3, current: 1"),
    ],
)
def test_a_list_that_is_none_says_why(text: str, error: str) -> None:
    with pytest.raises(IndexesError) as refused:
        count_indexes(text, 5)
    assert str(refused.value).startswith(error)


def test_parts_that_cannot_be_read_overlap_with_nothing() -> None:
    assert first_overlap("x,1-2,9", "y,2", 5) == 2
    assert first_overlap("9", "9", 5) is None

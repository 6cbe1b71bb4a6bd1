"""Numbers as parts of their limits, by how long they were so."""

from __future__ import annotations

from pilothouse.apiserver.flowcontrol.time_histogram import TimeHistogram

SECOND = 1e9


def test_every_nanosecond_is_one_observation_of_the_part_that_the_number_is_of_its_limit() -> None:
    now = 0.0
    histogram = TimeHistogram((0, 0.5, 1), lambda: now)
    histogram.set_limit(4)
    now = 1.0
    histogram.set(2)
    now = 4.0
    histogram.add(3)
    now = 5.0
    buckets, total = histogram.shown()
    assert buckets == [("0", 1 * SECOND), ("0.5", 4 * SECOND), ("1", 4 * SECOND), ("+Inf", 5 * SECOND)]
    assert total == (3 * 0.5 + 1 * 1.25) * SECOND
    assert histogram.shown() == (buckets, total)


def test_a_new_limit_counts_from_now_on_and_one_of_nothing_is_one() -> None:
    now = 0.0
    histogram = TimeHistogram((1, 2), lambda: now)
    histogram.set_limit(2)
    histogram.set(2)
    now = 1.0
    histogram.set_limit(0)
    now = 3.0
    assert histogram.shown() == ([("1", SECOND), ("2", 3 * SECOND), ("+Inf", 3 * SECOND)], 5 * SECOND)

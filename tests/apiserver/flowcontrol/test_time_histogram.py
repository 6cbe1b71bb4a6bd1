"""Numbers as parts of their limits, by how long they were so."""

from __future__ import annotations

from pilothouse.apiserver.flowcontrol.use import KindUse, LevelUse, TimeHistogram

SECOND = 1e9


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_every_nanosecond_is_one_observation_of_the_part_that_the_number_is_of_its_limit() -> None:
    histogram = TimeHistogram((0, 0.5, 1))
    histogram.set_limit(4)
    histogram.add(0, 1.0)
    histogram.add(2, 3.0)
    more = histogram.with_more([(5, 1.0)])
    assert more.shown() == (
        [("0", 1 * SECOND), ("0.5", 4 * SECOND), ("1", 4 * SECOND), ("+Inf", 5 * SECOND)],
        (3 * 0.5 + 1 * 1.25) * SECOND,
    )
    assert histogram.shown()[1] == 3 * 0.5 * SECOND, "what is shown is not kept"


def test_a_limit_of_nothing_is_one() -> None:
    histogram = TimeHistogram((1, 2))
    histogram.set_limit(0)
    histogram.add(2, 2.0)
    assert histogram.shown() == ([("1", 0), ("2", 2 * SECOND), ("+Inf", 2 * SECOND)], 4 * SECOND)


def test_a_new_limit_counts_from_now_on() -> None:
    clock = Clock()
    use = KindUse(clock)
    use.set_limits(executing=2, waiting=1)
    use.change(executing=2)
    clock.now = 1.0
    use.set_limits(executing=1, waiting=1)
    clock.now = 3.0
    _, total = use.shown("executing")
    assert total == (1 * 1 + 2 * 2) * SECOND
    assert use.shown("executing")[1] == total


def test_many_states_are_added_up_before_they_are_shown() -> None:
    clock = Clock()
    use = LevelUse(clock)
    for seats in range(3000):
        use.enter((seats, 0, 1, 0))
        clock.now += 1.0
    assert use.shown("seats")[1] == sum(range(3000)) * SECOND
    assert use.shown("executing")[1] == 3000 * SECOND


def test_demand_is_what_was_wanted_since_it_was_last_asked_for() -> None:
    clock = Clock()
    use = LevelUse(clock)
    use.enter((30, 10, 30, 2))
    clock.now = 1.0
    use.enter((0, 0, 0, 0))
    clock.now = 4.0
    first, second = use.reset_demand(), use.reset_demand()
    assert (first.average, first.high) == (10.0, 40)
    assert (second.average, second.high) == (0.0, 0)

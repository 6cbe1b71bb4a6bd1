"""When cron schedules are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.machinery.cron import FIELDS, Bounds, parse_schedule


def next_after(schedule: str, moment: str) -> str | None:
    found = parse_schedule(schedule).next_after(datetime.fromisoformat(moment))
    return None if found is None else found.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("schedule", "moment", "due"),
    [
        ("* * * * *", "2024-05-01T12:00:00Z", "2024-05-01 12:01:00"),
        ("* * * * *", "2024-05-01T12:00:59.5Z", "2024-05-01 12:01:00"),
        ("TZ=UTC */15 * * * *", "2024-05-01T12:00:00Z", "2024-05-01 12:15:00"),
        ("TZ=UTC 0 0 29 2 *", "2023-03-01T00:00:00Z", "2024-02-29 00:00:00"),
        ("TZ=UTC 0 0 1 * 1", "2024-05-01T00:00:00Z", "2024-05-06 00:00:00"),  # the first or a Monday
        ("TZ=UTC 0 0 ? * 1", "2024-05-01T00:00:00Z", "2024-05-06 00:00:00"),
        ("TZ=UTC 0 0 */2 * 1", "2024-05-01T00:00:00Z", "2024-05-03 00:00:00"),  # a step is no star
        ("TZ=UTC 0 9 * * MON-FRI", "2024-05-03T09:00:00Z", "2024-05-06 09:00:00"),
        ("TZ=UTC @yearly", "2024-05-01T00:00:00Z", "2025-01-01 00:00:00"),
        ("TZ=UTC @weekly", "2024-05-01T00:00:00Z", "2024-05-05 00:00:00"),
        ("TZ=UTC @hourly", "2024-05-01T00:30:00Z", "2024-05-01 01:00:00"),
        ("@every 90s", "2024-05-01T00:00:00.7Z", "2024-05-01 00:01:30"),
        ("@every 1ms", "2024-05-01T00:00:00Z", "2024-05-01 00:00:01"),
        ("TZ=Asia/Kolkata 30 9 * * *", "2024-05-01T00:00:00Z", "2024-05-01 04:00:00"),
        # clocks go forward: 2:30 does not exist on 31 March
        ("TZ=Europe/Berlin 30 2 * * *", "2024-03-30T12:00:00Z", "2024-04-01 00:30:00"),
        # clocks go back: 2:30 comes twice on 27 October
        ("TZ=Europe/Berlin 30 2 * * *", "2024-10-26T12:00:00Z", "2024-10-27 00:30:00"),
        ("TZ=Europe/Berlin 30 2 * * *", "2024-10-27T00:30:00Z", "2024-10-27 01:30:00"),
        ("TZ=Europe/Berlin 30 2 * * *", "2024-10-27T01:30:00Z", "2024-10-28 01:30:00"),
        ("59 23 31 2 *", "2024-05-01T00:00:00Z", None),
    ],
)
def test_the_next_time(schedule: str, moment: str, due: str | None) -> None:
    assert next_after(schedule, moment) == due


def lists(bounds: Bounds) -> st.SearchStrategy[str]:
    number = st.integers(bounds.low, bounds.high)
    few = st.sets(number, min_size=1, max_size=4).map(lambda found: ",".join(map(str, found)))
    return st.one_of(st.just("*"), st.just("*"), few, number.map(lambda step: f"*/{step + 1}"))


def matches(fields: tuple[str, ...], moment: datetime) -> bool:
    """The rules of cron, said once more in the plainest way."""
    values = (moment.minute, moment.hour, moment.day, moment.month, moment.isoweekday() % 7)
    held = [
        value in [*range(bounds.low, bounds.high + 1)][:: int(field[2:])]
        if "/" in field
        else field == "*" or str(value) in field.split(",")
        for field, value, bounds in zip(fields, values, FIELDS, strict=True)
    ]
    minute, hour, day, month, weekday = held
    either = "*" in (fields[2], fields[4]) or "*/1" in (fields[2], fields[4])
    return minute and hour and month and (day and weekday if either else day or weekday)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.tuples(*map(lists, FIELDS)), st.datetimes(datetime(2024, 1, 1), datetime(2024, 12, 31)))
def test_nothing_between_a_time_and_the_next_is_due(fields: tuple[str, ...], naive: datetime) -> None:
    moment = naive.replace(tzinfo=UTC, second=0, microsecond=0)
    due = parse_schedule("TZ=UTC " + " ".join(fields)).next_after(moment)
    end = moment + timedelta(hours=30) if due is None else min(due, moment + timedelta(hours=30))
    minute = moment + timedelta(minutes=1)
    while minute < end:
        assert not matches(fields, minute)
        minute += timedelta(minutes=1)
    if due is not None:
        assert matches(fields, due)

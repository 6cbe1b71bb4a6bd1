"""When the next job of a CronJob is due, and whether some were missed."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum

from pilothouse.machinery.cron.parser import parse_schedule
from pilothouse.machinery.cron.schedule import Schedule
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.times import parse_time, shifted

_MANY = 100
_PADDING = 0.1
"""A little late, so that a clock that is a little early does not miss the time."""


class Missed(Enum):
    NONE, FEW, MANY = range(3)


class NeverDue(ValueError):
    """The schedule can be read, but there is no such day."""

    def __init__(self) -> None:
        super().__init__("time difference between two schedules is less than 1 second")


@dataclass(frozen=True, slots=True)
class Due:
    since: datetime
    """After which it was looked for."""
    time: datetime | None = None
    """The last time that has come."""
    missed: Missed = Missed.NONE


def schedule_of(cron: Json) -> Schedule:
    """Raises ScheduleError. A time zone in the schedule itself goes before that in the spec."""
    schedule, zone = cron["spec"]["schedule"], cron["spec"].get("timeZone")
    return parse_schedule(schedule if "TZ" in schedule or zone is None else f"TZ={zone} {schedule}")


def due_time(cron: Json, schedule: Schedule, now: datetime) -> Due:
    """Return the last time that has come since the last job; what is too late to be started is not looked for.

    Raises NeverDue.
    """
    since, deadline = _last_run(cron), cron["spec"].get("startingDeadlineSeconds")
    if deadline is not None:
        since = max(since, shifted(now, -deadline))
    return _due_since(since, schedule, now)


def seconds_to_next(cron: Json, schedule: Schedule, now: datetime) -> float:
    """Return how long to wait before the CronJob is looked at again."""
    try:
        due = _due_since(_last_run(cron), schedule, now)
        after = due.time or (due.since if due.missed is Missed.NONE else now)
    except NeverDue:
        after = now
    coming = schedule.next_after(after)
    return 0.0 if coming is None else (coming - now).total_seconds() + _PADDING


def _last_run(cron: Json) -> datetime:
    text = (cron.get("status") or {}).get("lastScheduleTime") or metadata(cron)["creationTimestamp"]
    last = parse_time(text)
    assert last is not None
    return last


def _due_since(since: datetime, schedule: Schedule, now: datetime) -> Due:
    first = schedule.next_after(since)
    if first is None:
        raise NeverDue
    if now < first:
        return Due(since)
    second = schedule.next_after(first)
    if second is not None and now < second:
        return Due(since, first)
    if second is None or second - first < timedelta(seconds=1):
        raise NeverDue
    # How many were missed is estimated from the first two. From one before the last of so many the search begins:
    # exact for a schedule that is regular, and early enough for one that is not.
    interval = timedelta(seconds=round((second - first).total_seconds()))
    missed = (now - first) // interval + 1
    last = schedule.last_until(now, after=first + (missed - 2) * interval)
    return Due(since, last, Missed.MANY if missed > _MANY else Missed.FEW)

"""Schedule times of a CronJob: next, due and missed."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum

from pilothouse.machinery.cron import Schedule, parse_schedule
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, part
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.machinery.times import parse_time, shifted

_MANY = 100
_PADDING = 0.1
"""Seconds added to each wait, so that clock skew does not miss the schedule time."""


class Missed(Enum):
    NONE, FEW, MANY = range(3)


class NeverDue(PilothouseError, ValueError):
    """The schedule is valid but never matches a date."""

    def __init__(self) -> None:
        super().__init__("time difference between two schedules is less than 1 second")


@dataclass(frozen=True, slots=True)
class Due:
    since: datetime
    """Start of the search."""
    time: datetime | None = None
    """The latest due time."""
    missed: Missed = Missed.NONE


def schedule_of(cron: Json) -> Schedule:
    """Return the parsed schedule; its own time zone overrides spec.timeZone. Raises ScheduleError."""
    schedule, zone = cron["spec"]["schedule"], cron["spec"].get("timeZone")
    return parse_schedule(schedule if "TZ" in schedule or zone is None else f"TZ={zone} {schedule}")


def due_time(cron: Json, schedule: Schedule, now: datetime) -> Due:
    """Return the latest due time since the last job, within startingDeadlineSeconds. Raises NeverDue."""
    since, deadline = _last_run(cron), cron["spec"].get("startingDeadlineSeconds")
    if deadline is not None:
        since = max(since, shifted(now, -deadline))
    return _due_since(since, schedule, now)


def seconds_to_next(cron: Json, schedule: Schedule, now: datetime) -> float:
    """Return the seconds until the next sync of the CronJob."""
    try:
        due = _due_since(_last_run(cron), schedule, now)
        after = due.time or (due.since if due.missed is Missed.NONE else now)
    except NeverDue:
        after = now
    coming = schedule.next_after(after)
    return 0.0 if coming is None else (coming - now).total_seconds() + _PADDING


def _last_run(cron: Json) -> datetime:
    text = part(cron, "status").get("lastScheduleTime") or metadata(cron)["creationTimestamp"]
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
    # Estimate the number of missed times from the first interval, and start the search just before the last: exact for
    # regular schedules, and early enough for others.
    interval = timedelta(seconds=round((second - first).total_seconds()))
    missed = (now - first) // interval + 1
    last = schedule.last_until(now, after=first + (missed - 2) * interval)
    return Due(since, last, Missed.MANY if missed > _MANY else Missed.FEW)

"""When a schedule is due, as robfig/cron finds it.

An hour that a change of clocks leaves out is not due that day; one that comes twice is due twice.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Errors, Path, invalid

_SECOND, _MINUTE, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
_YEARS = 5


class Schedule(Protocol):
    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after this one at which the schedule is due; None if it is not within years."""

    def last_until(self, now: datetime, after: datetime) -> datetime | None:
        """Return the last time at which it is due, up to now, if it begins after some time; None if there is none."""


@dataclass(frozen=True, slots=True)
class Field:
    values: frozenset[int]
    is_any: bool
    """Whether it was written `*` or `?`."""

    def __contains__(self, value: int) -> bool:
        return value in self.values


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed time after another, from whichever time on."""

    seconds: int

    def next_after(self, moment: datetime) -> datetime | None:
        return moment.replace(microsecond=0) + self._delay

    def last_until(self, now: datetime, after: datetime) -> datetime | None:
        first = after.replace(microsecond=0) + self._delay
        return first + (now - first) // self._delay * self._delay if first <= now else None

    @property
    def _delay(self) -> timedelta:
        return timedelta(seconds=max(1, self.seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSchedule:
    minutes: Field
    hours: Field
    days: Field
    months: Field
    weekdays: Field
    """0 is Sunday."""
    zone: tzinfo | None = None
    """None for the machine's own."""

    def next_after(self, moment: datetime) -> datetime | None:
        """The times that are compared go forward by UTC, and are read as the zone's clocks show them."""
        due = moment.astimezone(UTC).replace(microsecond=0) + _SECOND
        if due.second:
            due = due.replace(second=0) + _MINUTE
        last_year = due.astimezone(self.zone).year + _YEARS
        while (local := due.astimezone(self.zone)).year <= last_year:
            if local.month not in self.months:
                due = self._start_of(date(local.year + local.month // 12, local.month % 12 + 1, 1))
            elif not self._is_on(local):
                due = self._start_of(local.date() + _DAY)
            elif local.hour not in self.hours:
                due += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                due += _MINUTE
            else:
                return due
        return None

    def last_until(self, now: datetime, after: datetime) -> datetime | None:
        """It is found by halving the time in which it lies, however often the schedule is due in that."""
        found = self.next_after(after)
        if found is None or found > now:
            return None
        early, late = found, now
        while late - early >= _SECOND:
            middle = early + (late - early) / 2
            due = self.next_after(middle)
            if due is not None and due <= now:
                early = found = due
            else:
                late = middle
        return found

    def _is_on(self, day: datetime) -> bool:
        """Where both the day of the month and of the week are given, one is enough."""
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month and of_week if self.days.is_any or self.weekdays.is_any else of_month or of_week

    def _start_of(self, day: date) -> datetime:
        return datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC)


_NAME_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class TimeZoneError(ValueError):
    """The message is Go's."""


def load_location(name: str) -> tzinfo | None:
    """Return the zone; None for the machine's own. Raises TimeZoneError for a name that stands for no time zone."""
    if name in ("", "UTC"):
        return UTC
    if name == "Local":
        return None
    if ".." in name or name[0] in "/\\":
        raise TimeZoneError("time: invalid location name")
    if not _exists(name):
        raise TimeZoneError(f"unknown time zone {name}")
    return ZoneInfo(name)


def validate_time_zone(name: str | None, path: Path) -> Errors:
    if name is None:
        return
    if not name:
        yield invalid(path, name, "timeZone must be nil or non-empty string")
        return
    if not all(map(_is_name_part, name.split("/"))):
        yield invalid(path, name, f"unknown time zone {name}")
        return
    if name.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, name, why)
    try:
        load_location(name)
    except TimeZoneError as error:
        yield invalid(path, name, str(error))


def _is_name_part(part: str) -> bool:
    return part not in (".", "..") and not part.startswith("-") and bool(_NAME_PART.fullmatch(part))


@bounded_cache(entries=256, key_bytes=64)
def _exists(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return False
    return True

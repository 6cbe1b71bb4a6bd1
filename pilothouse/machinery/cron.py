"""Cron schedules with the semantics of robfig/cron: five fields, or a descriptor such as @every 1h30m.

    parse_schedule("*/5 9-17 * * MON-FRI")   → a CronSchedule
    parse_schedule("61 * * * *")             → ScheduleError: end of range (61) above maximum (59): 61

A field is a comma-separated list of ranges: `*`, `?`, `a` or `a-b`, each with an optional `/step`. When clocks change,
a skipped hour is not due on that day, and a repeated hour is due twice.
"""

from __future__ import annotations

import re
from dataclasses import field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.gofmt import parse_int64, quote

_SECOND, _MINUTE, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
_YEARS = 5


class Schedule(Protocol):
    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first due time after `moment`; None without a due time in the coming years."""

    def last_until(self, now: datetime, after: datetime) -> datetime | None:
        """Return the last due time in (after, now]; None without a due time."""


@dataclass(frozen=True, slots=True)
class Field:
    values: frozenset[int]
    is_any: bool
    """Whether the field is `*` or `?`."""

    def __contains__(self, value: int) -> bool:
        return value in self.values


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed interval from an arbitrary start."""

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
    """None = local time zone of the machine."""

    def next_after(self, moment: datetime) -> datetime | None:
        """Advance in UTC, and compare with the wall clock of the zone."""
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
        """Find the last due time by bisection, in logarithmic time."""
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
        """Return whether the day matches. If day of month and day of week are both restricted, either suffices."""
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month and of_week if self.days.is_any or self.weekdays.is_any else of_month or of_week

    def _start_of(self, day: date) -> datetime:
        return datetime(day.year, day.month, day.day, tzinfo=self.zone).astimezone(UTC)


_NAME_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class TimeZoneError(ValueError):
    """An unknown time zone; the message is Go's."""


def load_location(name: str) -> tzinfo | None:
    """Return the time zone; None for the local zone. Raises TimeZoneError for an unknown name."""
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
        reason = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, name, reason)
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


_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SPACE = re.compile(r"[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


class ScheduleError(ValueError):
    """An invalid schedule; the message is robfig/cron's."""


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


@dataclass(frozen=True, slots=True)
class Bounds:
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Range:
    start: int
    end: int


FIELDS = (
    Bounds(0, 59),
    Bounds(0, 23),
    Bounds(1, 31),
    Bounds(1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    Bounds(0, 6, _numbered("sun mon tue wed thu fri sat", 0)),
)
"""Minute, hour, day of the month, month, day of the week."""


def parse_schedule(spec: str) -> Schedule:
    """Parse a schedule. Raises ScheduleError."""
    if not spec:
        raise ScheduleError("empty spec string")
    zone: tzinfo | None = None
    if spec.startswith(("TZ=", "CRON_TZ=")):
        name, spec = _time_zone(spec)
        zone = _location(name)
    if spec.startswith(_EVERY):
        try:
            return Every(parse_duration(spec.removeprefix(_EVERY)) // 1_000_000_000)
        except DurationError as error:
            raise ScheduleError(f"failed to parse duration {spec}: {error}") from None
    if spec.startswith("@") and spec not in _DESCRIPTORS:
        raise ScheduleError(f"unrecognized descriptor: {spec}")
    return _cron(_DESCRIPTORS.get(spec, spec), zone)


def _cron(spec: str, zone: tzinfo | None) -> CronSchedule:
    words = [word for word in _SPACE.split(spec) if word]
    if len(words) != len(FIELDS):
        raise ScheduleError(f"expected exactly {len(FIELDS)} fields, found {len(words)}: [{' '.join(words)}]")
    minutes, hours, days, months, weekdays = map(_field, words, FIELDS)
    return CronSchedule(minutes=minutes, hours=hours, days=days, months=months, weekdays=weekdays, zone=zone)


def _time_zone(spec: str) -> tuple[str, str]:
    """Split a spec into (time zone, rest)."""
    zone, space, rest = spec.partition(" ")
    if not space:
        # robfig/cron cuts the name at a missing space, and Go reports this panic.
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    return zone.partition("=")[2], rest.strip()


def _location(name: str) -> tzinfo | None:
    try:
        return load_location(name)
    except TimeZoneError as error:
        raise ScheduleError(f"provided bad location {name}: {error}") from None


def _field(word: str, bounds: Bounds) -> Field:
    ranges = [_range(expression, bounds) for expression in filter(None, word.split(","))]
    return Field(frozenset().union(*(range_.values for range_ in ranges)), any(range_.is_any for range_ in ranges))


def _range(expression: str, bounds: Bounds) -> Field:
    limits, *steps = expression.split("/")
    found = _limits(expression, limits, bounds)
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {expression}")
    step = _number(steps[0]) if steps else 1
    if steps and "-" not in limits:
        # `a/step` extends to the highest value.
        found = _Range(found.start, bounds.high)
    if found.start < bounds.low:
        raise ScheduleError(f"beginning of range ({found.start}) below minimum ({bounds.low}): {expression}")
    if found.end > bounds.high:
        raise ScheduleError(f"end of range ({found.end}) above maximum ({bounds.high}): {expression}")
    if found.start > found.end:
        raise ScheduleError(f"beginning of range ({found.start}) beyond end of range ({found.end}): {expression}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {expression}")
    values = range(found.start, found.end + 1, step)
    return Field(frozenset(values), is_any=limits.startswith(("*", "?")) and step == 1)


def _limits(expression: str, limits: str, bounds: Bounds) -> _Range:
    low, *high = limits.split("-")
    if low in ("*", "?"):
        return _Range(bounds.low, bounds.high)
    start = _value(low, bounds)
    if len(high) > 1:
        raise ScheduleError(f"too many hyphens: {expression}")
    return _Range(start, _value(high[0], bounds) if high else start)


def _value(text: str, bounds: Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    try:
        number = parse_int64(text)
    except ValueError:
        reason = f"strconv.Atoi: parsing {quote(text)}: value out of range"
        raise ScheduleError(f"failed to parse int from {text}: {reason}") from None
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number

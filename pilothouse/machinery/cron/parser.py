"""Cron schedules, read as robfig/cron's standard parser does: five fields, or a descriptor such as @every 1h30m.

    parse_schedule("*/5 9-17 * * MON-FRI")   → a CronSchedule
    parse_schedule("61 * * * *")             → ScheduleError: end of range (61) above maximum (59): 61

A field is a list of ranges with commas between them; a range is `*`, `?`, `a` or `a-b`, each with an optional `/step`.
"""

from __future__ import annotations

import re
from dataclasses import field
from datetime import tzinfo

from pilothouse.machinery.cron.schedule import CronSchedule, Every, Field, Schedule, TimeZoneError, load_location
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.integers import parse_int64

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
    """The message is the parser's."""


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
    """Raises ScheduleError."""
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
    """Return the name of the zone, and the rest."""
    zone, space, rest = spec.partition(" ")
    if not space:
        # The parser cuts the name at a space that is not there, which Go reports so.
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    return zone.partition("=")[2], rest.strip()


def _location(name: str) -> tzinfo | None:
    try:
        return load_location(name)
    except TimeZoneError as error:
        raise ScheduleError(f"provided bad location {name}: {error}") from None


def _field(word: str, bounds: Bounds) -> Field:
    ranges = [_range(expression, bounds) for expression in filter(None, word.split(","))]
    return Field(frozenset().union(*(each.values for each in ranges)), any(each.is_any for each in ranges))


def _range(expression: str, bounds: Bounds) -> Field:
    limits, *steps = expression.split("/")
    found = _limits(expression, limits, bounds)
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {expression}")
    step = _number(steps[0]) if steps else 1
    if steps and "-" not in limits:
        # `a/step` goes on to the highest value.
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
        why = f"strconv.Atoi: parsing {quote(text)}: value out of range"
        raise ScheduleError(f"failed to parse int from {text}: {why}") from None
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number

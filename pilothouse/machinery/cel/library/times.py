"""The parts of timestamps and durations. A timezone is a name or an offset; without one it is UTC."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp
from pilothouse.machinery.cel.library.rows import Row, row
from pilothouse.machinery.gofmt import quote

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS: dict[str, tuple[str, Callable[[datetime], int]]] = {
    "getFullYear": ("year", lambda moment: moment.year),
    "getMonth": ("month", lambda moment: moment.month - 1),
    "getDayOfYear": ("day_of_year", lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": ("day_of_month", lambda moment: moment.day - 1),
    "getDate": ("day_of_month_1_based", lambda moment: moment.day),
    "getDayOfWeek": ("day_of_week", lambda moment: moment.isoweekday() % 7),
    "getHours": ("hours", lambda moment: moment.hour),
    "getMinutes": ("minutes", lambda moment: moment.minute),
    "getSeconds": ("seconds", lambda moment: moment.second),
    "getMilliseconds": ("milliseconds", lambda moment: moment.microsecond // 1000),
}
_UNITS = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9, "getMilliseconds": 10**6}
_DIGITS = re.compile(r"[+-]?\d{1,9}", re.ASCII)


def _in_utc(part: Callable[[datetime], int]) -> Callable[[Timestamp], int]:
    return lambda value: part(_moment(value))


def _in_zone(part: Callable[[datetime], int]) -> Callable[[Timestamp, str], int]:
    def run(value: Timestamp, zone: str) -> int:
        try:
            return part(_moment(value).astimezone(_zone(zone)))
        except OverflowError:
            return part(_moment(value))

    return run


def _moment(value: Timestamp) -> datetime:
    return _EPOCH + timedelta(microseconds=value.nanoseconds // 1000)


def _whole_units(unit: int) -> Callable[[Duration], int]:
    def count(value: Duration) -> int:
        units = abs(value.nanoseconds) // unit
        return -units if value.nanoseconds < 0 else units

    return count


def _zone(name: str) -> tzinfo:
    hours, colon, minutes = name.partition(":")
    if not colon:
        return _named(name)
    for part in (hours, minutes):
        if _DIGITS.fullmatch(part) is None:
            raise EvaluationFailed(f"strconv.Atoi: parsing {quote(part)}: invalid syntax")
    offset = int(hours) * 60 + (-int(minutes) if hours.startswith("-") else int(minutes))
    return _FixedOffset(timedelta(minutes=offset))


class _FixedOffset(tzinfo):
    """An offset of any size; Python's own stops at a day."""

    def __init__(self, offset: timedelta) -> None:
        self._offset = offset

    def fromutc(self, moment: datetime) -> datetime:
        return moment + self._offset

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return self._offset

    def dst(self, moment: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> None:
        return None


def _named(name: str) -> tzinfo:
    try:
        return UTC if name in ("", "UTC", "Local") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationFailed(f"unknown time zone {name}") from None


def _rows() -> Iterator[Row]:
    for function, (name, part) in _PARTS.items():
        yield row(f"timestamp_to_{name}", f"timestamp -> {function}() int", _in_utc(part))
        zoned = "tz" if name == "seconds" else "with_tz"
        yield row(f"timestamp_to_{name}_{zoned}", f"timestamp -> {function}(string) int", _in_zone(part))
        if function in _UNITS:
            yield row(f"duration_to_{name}", f"duration -> {function}() int", _whole_units(_UNITS[function]))


TIMES = tuple(_rows())

"""The parts of timestamps and durations. A timezone is a name or an offset; without one it is UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pilothouse.machinery.cel.interpreter.dispatch import Overload
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import Duration, Timestamp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}
_UNITS = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9, "getMilliseconds": 10**6}


def time_functions() -> Iterator[Overload]:
    for name, part in _PARTS.items():
        yield Overload(name, (Timestamp,), _in_utc(part))
        yield Overload(name, (Timestamp, str), _in_zone(part))
    for name, unit in _UNITS.items():
        yield Overload(name, (Duration,), _whole_units(unit))


def _in_utc(part: Callable[[datetime], int]) -> Callable[[Timestamp], int]:
    return lambda value: part(_moment(value))


def _in_zone(part: Callable[[datetime], int]) -> Callable[[Timestamp, str], int]:
    return lambda value, zone: part(_moment(value).astimezone(_zone(zone)))


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
    try:
        offset = int(hours) * 60, int(minutes)
    except ValueError:
        wrong = minutes if hours.lstrip("+-").isdecimal() else hours
        raise EvaluationFailed(f'strconv.Atoi: parsing "{wrong}": invalid syntax') from None
    if not 0 <= offset[1] <= 59:
        raise EvaluationFailed(f"timezone offset minutes out of range [0, 59]: {name}")
    return timezone(timedelta(minutes=offset[0] - offset[1] if name.startswith("-") else offset[0] + offset[1]))


def _named(name: str) -> tzinfo:
    try:
        return UTC if name in ("", "UTC") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationFailed(f"unknown time zone {name}") from None

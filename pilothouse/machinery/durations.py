"""Durations: human-readable as in tables (`5m`, `2d3h`), and in Go's notation (`1h30m0s`)."""

from __future__ import annotations

import re
from datetime import timedelta

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.times import Clock, parse_time, system_clock

_SECOND = 1_000_000_000
_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 1_000_000, "s": _SECOND}
_UNITS |= {"m": 60 * _SECOND, "h": 3600 * _SECOND}
_MAX_NANOSECONDS = 2**63
_STEP = re.compile(r"([0-9]*)(\.?)([0-9]*)([^0-9.]*)")


class DurationError(ValueError):
    """Invalid duration; the message is Go's."""


def age(timestamp: str | None, clock: Clock = system_clock) -> str:
    """Return the age of a stored time, as in the Age column."""
    moment = parse_time(timestamp) if timestamp else None
    return "<unknown>" if moment is None else human_duration(clock() - moment)


def until(timestamp: str | None, clock: Clock = system_clock) -> str:
    """Return the time until a stored time, as in tables."""
    moment = parse_time(timestamp) if timestamp else None
    return "<unknown>" if moment is None else human_duration(moment - clock())


def human_duration(span: timedelta) -> str:
    """Format with two or three significant figures. Up to one second in the future counts as 0s, beyond as
    <invalid>."""
    seconds = _whole_seconds(span)
    if seconds < -1:
        return "<invalid>"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    return _pair(days // 365, "y", days % 365 if days < 365 * 8 else 0, "d")


def short_human_duration(span: timedelta) -> str:
    """Format in the largest unit only."""
    seconds = _whole_seconds(span)
    if seconds < -1:
        return "<invalid>"
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (86400, 3600, "h"), (86400 * 365, 86400, "d")):
        if seconds < limit:
            return f"{max(seconds, 0) // size}{unit}"
    return f"{seconds // (86400 * 365)}y"


def seconds(count: int) -> timedelta:
    """Return `count` seconds with Go's overflow of `count * time.Second`: values beyond about 292 years wrap around."""
    nanoseconds = (count * _SECOND + _MAX_NANOSECONDS) % (2 * _MAX_NANOSECONDS) - _MAX_NANOSECONDS
    return timedelta(microseconds=nanoseconds // 1000)


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a Go duration such as `1h15m30.5s`. Raises DurationError with Go's message."""
    rest = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f"time: invalid duration {quote(text)}")
    total = 0
    while rest:
        match = _STEP.match(rest)
        assert match is not None
        total += _step(match, text)
        rest = rest[match.end() :]
    if total > _MAX_NANOSECONDS - (0 if text.startswith("-") else 1):
        raise DurationError(f"time: invalid duration {quote(text)}")
    return -total if text.startswith("-") else total


def format_duration(nanoseconds: int) -> str:
    """Format as Go does: `0s`, `1.5µs`, `1h0m0.25s`."""
    sign, size = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if size < _SECOND:
        unit = "s" if not size else "ns" if size < 1000 else "µs" if size < 1_000_000 else "ms"
        return f"{sign}{_decimal(size, _UNITS[unit])}{unit}"
    minutes, rest = divmod(size, 60 * _SECOND)
    hours, minutes_left = divmod(minutes, 60)
    seconds = f"{_decimal(rest, _SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes_left}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _step(match: re.Match[str], text: str) -> int:
    whole, _, fraction, unit = match.groups()
    if not whole and not fraction:
        raise DurationError(f"time: invalid duration {quote(text)}")
    if not unit:
        raise DurationError(f"time: missing unit in duration {quote(text)}")
    if unit not in _UNITS:
        raise DurationError(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
    if len(whole) > 19:
        raise DurationError(f"time: invalid duration {quote(text)}")
    # Digits of a fraction beyond the nineteenth are below a nanosecond.
    digits = fraction[:19]
    parts = int(digits or "0") * _UNITS[unit] // int("1" + "0" * len(digits))
    return int(whole or "0") * _UNITS[unit] + parts


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def _whole_seconds(span: timedelta) -> int:
    return int(span / timedelta(seconds=1))


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}" + (f"{small}{small_unit}" if small else "")

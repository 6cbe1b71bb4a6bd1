"""API timestamps: metav1.Time with seconds, metav1.MicroTime with six decimal places, both in UTC.

Code that depends on the time takes a Clock, so that tests can control the time.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from math import floor
from typing import TypeAlias

from pilothouse.machinery import server_time
from pilothouse.machinery.schema.gotime import TimeError, canonical_micro_time, canonical_time

Clock: TypeAlias = Callable[[], datetime]
"""Return the current time with a time zone."""


def system_clock() -> datetime:
    return datetime.fromtimestamp(server_time.wall(), UTC)


_formatted = (-1, "")
"""The last second of the system clock that `now` formatted, and its text."""


def now(clock: Clock = system_clock) -> str:
    """Return the current time as metav1.Time."""
    global _formatted
    if clock is not system_clock:
        return format_time(clock())
    second, text = _formatted
    current = floor(server_time.wall())
    if current != second:
        text = format_time(datetime.fromtimestamp(current, UTC))
        _formatted = (current, text)
    return text


def now_micro(clock: Clock = system_clock) -> str:
    return format_micro_time(clock())


def format_time(moment: datetime) -> str:
    """Format as metav1.Time: 2024-02-01T12:00:00Z. Fractions of a second are dropped."""
    return _utc(moment).isoformat(timespec="seconds") + "Z"


def format_micro_time(moment: datetime) -> str:
    """Format as metav1.MicroTime: 2024-02-01T12:00:00.000000Z."""
    return _utc(moment).isoformat(timespec="microseconds") + "Z"


def parse_time(text: str) -> datetime | None:
    """Parse a metav1.Time; None for Go's zero time. Raises TimeError with Go's message."""
    return _moment(canonical_time(text), text)


def optional_time(text: str | None) -> datetime | None:
    """Parse an optional metav1.Time; None for a missing, empty or zero time. Raises TimeError."""
    return parse_time(text) if text else None


def parse_micro_time(text: str) -> datetime | None:
    """Parse a metav1.MicroTime; None for Go's zero time. Raises TimeError with Go's message."""
    return _moment(canonical_micro_time(text), text)


def is_date(text: str) -> bool:
    """Return whether the text is an ISO 8601 date: 2024-02-01."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def shifted(moment: datetime, seconds: float) -> datetime:
    """Return the moment plus `seconds`, clamped to the years 1 to 9999."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return (datetime.max if seconds > 0 else datetime.min).replace(tzinfo=UTC)


def _utc(moment: datetime) -> datetime:
    assert moment.tzinfo is not None, "a moment without a time zone is none"
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).replace(tzinfo=None)


def _moment(canonical: str | None, text: str) -> datetime | None:
    try:
        return None if canonical is None else datetime.fromisoformat(canonical)
    except ValueError:
        raise TimeError(f"{text} lies outside the years 1 to 9999") from None

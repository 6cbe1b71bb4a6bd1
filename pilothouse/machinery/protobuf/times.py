"""Times and durations between their JSON text and numbers: what metav1's Time, MicroTime and Duration hold."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = re.compile(r"([-+]?)((?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[-+]?0")
_TERM = re.compile(r"(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)")

ZERO_TIME = -62135596800
"""Go's zero time, the first second of year 1, as a Unix time."""


def parse_time(text: str) -> datetime:
    """An RFC 3339 time. ValueError on anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone")
    return moment


def unix_seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _SECOND


def format_seconds(seconds: int) -> str:
    """`2024-01-02T03:04:05Z`. OverflowError or ValueError outside the years 1 to 9999."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19] + "Z"


def format_micros(seconds: int, micros: int) -> str:
    """`2024-01-02T03:04:05.000006Z`."""
    return (_EPOCH + timedelta(seconds=seconds, microseconds=micros)).isoformat(timespec="microseconds")[:26] + "Z"


def parse_duration(text: str) -> int:
    """The nanoseconds of Go's `1h2m3.5s`. ValueError on anything that time.ParseDuration refuses."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"time: invalid duration {text!r}")
    total = sum(_nanos(*term) for term in _TERM.findall(text))
    return -total if text.startswith("-") else total


def _nanos(whole: str, fraction: str, unit: str) -> int:
    scale, digits = _UNITS[unit], int(fraction or 0)
    part: int = digits * scale // 10 ** len(fraction)
    return int(whole or 0) * scale + part


def format_duration(nanos: int) -> str:
    """As Go's Duration.String: `1h0m0s`, `1.5s`, `2µs`, `0s`."""
    sign, nanos = ("-" if nanos < 0 else ""), abs(nanos)
    if nanos < 10**9:
        return sign + _below_a_second(nanos)
    minutes, rest = divmod(nanos, 60 * 10**9)
    text = _decimal(rest, 9) + "s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = (f"{hours}h" if hours else "") + f"{minutes}m{text}"
    return sign + text


def _below_a_second(nanos: int) -> str:
    if nanos == 0:
        return "0s"
    if nanos < 10**3:
        return f"{nanos}ns"
    return _decimal(nanos, 3) + "µs" if nanos < 10**6 else _decimal(nanos, 6) + "ms"


def _decimal(number: int, digits: int) -> str:
    """`number` / 10**`digits`, without trailing zeros."""
    whole, fraction = divmod(number, 10**digits)
    tail = f"{fraction:0{digits}d}".rstrip("0") if fraction else ""
    return f"{whole}.{tail}" if tail else str(whole)

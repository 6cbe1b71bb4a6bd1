"""Durations as Go writes them, in seconds: "1m30s" is 90.0."""

from __future__ import annotations

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)([^\d.]*)")


def parse_duration(text: str) -> float:
    """Go's time.ParseDuration. Raises ValueError with Go's message."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits == "0":
        return 0.0
    seconds, at = 0.0, 0
    while at < len(digits):
        part = _PART.match(digits, at)
        if part is None:
            break
        seconds += float(part[1]) * _scale(part[2], text)
        at = part.end()
    if not digits or at < len(digits):
        raise ValueError(f'time: invalid duration "{text}"')
    return -seconds if text[0] == "-" else seconds


def _scale(unit: str, text: str) -> float:
    if not unit:
        raise ValueError(f'time: missing unit in duration "{text}"')
    if unit not in _UNITS:
        raise ValueError(f'time: unknown unit "{unit}" in duration "{text}"')
    return _UNITS[unit]


def format_duration(seconds: float) -> str:
    """Go's Duration.String, down to milliseconds: 90.0 is "1m30s", 3600.0 is "1h0m0s", 0.25 is "250ms"."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:g}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text

"""Parsing of integers with Go's rules and messages. Python's int() rejects texts with thousands of digits."""

from __future__ import annotations

import re

from pilothouse.machinery.gofmt import quote

_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS = 19
"""Maximum digits of an int64."""


def parse_int64(text: str) -> int:
    """Parse an int64. Raises ValueError with Go's message."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    digits = text.lstrip("+-0") or "0"
    number = int(digits) if len(digits) <= _DIGITS else 2**64
    number = -number if text[0] == "-" else number
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number


def scaled_int_or_percent(value: int | str, total: int, *, round_up: bool) -> int:
    """Return the number, or the percentage of `total`. Raises ValueError for an invalid percentage."""
    if isinstance(value, int):
        return value
    share = parse_int64(value.removesuffix("%")) * total
    return -(-share // 100) if round_up else share // 100

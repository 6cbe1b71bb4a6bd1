"""Integers in text, read as Go reads them, however long the text is: Python refuses thousands of digits."""

from __future__ import annotations

import re

from pilothouse.machinery.gofmt import quote

_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS = 19
"""How many digits an int64 can have."""


def parse_int64(text: str) -> int:
    """Raises ValueError with Go's message."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    number = int(text) if len(text.lstrip("+-0")) <= _DIGITS else 2**63
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return number

"""PatternFormat: a regular expression with upstream's message; a call returns the problems of a value. Also range
checks of ports and ids.

is_label = PatternFormat("[a-z]+", "a label must consist of letters", "abc", limit=63) is_label("x")  → [] is_label("1")
→ ["a label must consist of letters (e.g. 'abc', regex used for validation is '[a-z]+')"]
"""

from __future__ import annotations

import re

from pilothouse.machinery.checkpoints import checkpoint

EMPTY_ERROR = "must be non-empty"
EMPTY_IF_SPECIFIED_ERROR = "must be non-empty if specified"
LINE_BREAKS_ERROR = "must not contain line breaks"
IS_NEGATIVE_ERROR = "must be greater than or equal to 0"


_SHORT = 1024
"""Characters. Longer values use RE2, which matches in linear time."""


class PatternFormat:
    """Checks the length in bytes and the characters of a value. A valid value costs one match."""

    __slots__ = ("_limit", "_matches", "_message", "_pattern", "_short", "_unit")

    def __init__(self, pattern: str, message: str, *examples: str, limit: int = 0, unit: str = "characters") -> None:
        self._matches = re.compile(pattern, re.ASCII).fullmatch
        self._message = regex_error(message, pattern, *examples)
        self._pattern = pattern
        self._limit = limit
        self._short = min(limit or _SHORT, _SHORT)
        self._unit = unit

    def matches(self, value: str) -> bool:
        """Return whether the characters match, at any length."""
        if len(value) <= _SHORT:
            return self._matches(value) is not None
        # Imported late: nobody sends such values but to see what happens.
        from pilothouse.machinery.cel.patterns import matcher

        return matcher(rf"^(?:{self._pattern})\z")(value)

    def length_errors(self, value: str) -> list[str]:
        too_long = self._limit and len(value.encode()) > self._limit
        return [max_len_error(self._limit, self._unit)] if too_long else []

    def __call__(self, value: str) -> list[str]:
        checkpoint()
        # All patterns are ASCII-only, so a matching value has as many bytes as characters.
        if len(value) <= self._short and self._matches(value):
            return []
        return self.length_errors(value) + ([] if self.matches(value) else [self._message])


def regex_error(message: str, pattern: str, *examples: str) -> str:
    samples = " or ".join(f"'{example}', " for example in examples)
    return f"{message} ({'e.g. ' if samples else ''}{samples}regex used for validation is '{pattern}')"


def max_len_error(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def inclusive_range_error(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


MAX_ID = 2**31 - 1


def is_valid_port_num(port: int) -> list[str]:
    return is_in_range(port, 1, 65535)


def is_valid_user_id(uid: int) -> list[str]:
    return is_in_range(uid, 0, MAX_ID)


def is_valid_group_id(gid: int) -> list[str]:
    return is_in_range(gid, 0, MAX_ID)


def is_in_range(value: int, low: int, high: int) -> list[str]:
    return [] if low <= value <= high else [inclusive_range_error(low, high)]

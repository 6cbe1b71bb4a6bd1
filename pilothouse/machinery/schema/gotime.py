"""Times in RFC 3339 as Go's time.Parse reads them and as metav1.Time and metav1.MicroTime print them.

canonical_time("2024-02-01T01:00:00.5+01:00")   → "2024-02-01T00:00:00Z"
canonical_time("yesterday")                     → TimeError: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": …
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import datetime, timedelta

from pilothouse.machinery.dataclass import dataclass

_PLAIN = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{6})?Z", re.ASCII
)
_UNQUOTABLE = re.compile(r'["\\\x00-\x1f]|[^\x00-\x7f]')
_ZERO = "0001-01-01T00:00:00Z"
_ZERO_MICRO = "0001-01-01T00:00:00.000000Z"


class TimeError(ValueError):
    """An invalid time; the message is Go's."""


def canonical_time(text: str) -> str | None:
    """Return a metav1.Time as Go prints it, in whole seconds of UTC; None for Go's zero time, which prints as null."""
    match = _PLAIN.fullmatch(text)
    out = text if match and match[1] is None else _Reading(text, "2006-01-02T15:04:05Z07:00").read("")
    return None if out == _ZERO else out


def canonical_micro_time(text: str) -> str | None:
    """Return a metav1.MicroTime as Go prints it, with six fractional digits."""
    match = _PLAIN.fullmatch(text)
    out = text if match and match[1] else _Reading(text, "2006-01-02T15:04:05.000000Z07:00").read(".%f")
    return None if out == _ZERO_MICRO else out


@dataclass(slots=True)
class _Reading:
    """Single pass over a text, part by part in the order of the layout; `rest` is the unread text."""

    text: str
    layout: str
    rest: str = ""

    def read(self, fraction_format: str) -> str:
        self.rest = self.text
        year = self._part("2006", self._year)
        month = self._part("01", self._number, before="-", low=1, high=12, name="month")
        day = self._part("02", self._number, before="-")
        hour = self._part("15", self._short_number, before="T", high=23, name="hour")
        minute = self._part("04", self._number, before=":", high=59, name="minute")
        second = self._part("05", self._number, before=":", high=59, name="second")
        micro = self._part(".000000", self._micros) if fraction_format else self._fraction()
        offset = self._part("Z07:00", self._zone)
        if self.rest:
            raise TimeError(f"{self._subject}: extra text: {_quoted(self.rest)}")
        if not 1 <= day <= monthrange(year % 400 + 400, month)[1]:
            raise TimeError(f"{self._subject}: day out of range")
        parts = (year, month, day, hour, minute, second, micro)
        # The calendar repeats every 400 years: shift the year into datetime's range.
        cycle = parts[0] // 400 * 400 - 400
        moment = datetime(parts[0] - cycle, *parts[1:]) - timedelta(minutes=offset)
        return f"{moment.year + cycle:04d}" + moment.strftime(f"-%m-%dT%H:%M:%S{fraction_format}Z")

    @property
    def _subject(self) -> str:
        return f"parsing time {_quoted(self.text)}"

    def _part(
        self, part: str, read: Callable[[], int], *, before: str = "", low: int = 0, high: int = 9999, name: str = ""
    ) -> int:
        if before and not self.rest.startswith(before):
            raise self._cannot(self.rest, before)
        hold = self.rest = self.rest.removeprefix(before)
        try:
            number = read()
        except TimeError:
            raise
        except (ValueError, IndexError):
            raise self._cannot(hold, part) from None
        if name and not low <= number <= high:
            raise TimeError(f"{self._subject}: {name} out of range")
        return number

    def _cannot(self, value: str, part: str) -> TimeError:
        return TimeError(f'{self._subject} as "{self.layout}": cannot parse {_quoted(value)} as "{part}"')

    def _take(self, count: int) -> int:
        digits, self.rest = self.rest[:count], self.rest[count:]
        if len(digits) < count or not (digits.isascii() and digits.isdigit()):
            raise ValueError
        return int(digits)

    def _year(self) -> int:
        return self._take(4)

    def _number(self) -> int:
        return self._take(2)

    def _short_number(self) -> int:
        """Read an hour of one or two digits, as Go does."""
        return self._take(2 if self.rest[1:2].isdigit() else 1)

    def _fraction(self) -> int:
        """Read an optional fraction; Go accepts a fraction even if the layout has none."""
        match = re.match(r"[.,](\d+)", self.rest, re.ASCII)
        if match is None:
            return 0
        self.rest = self.rest[match.end() :]
        return int(match[1][:6].ljust(6, "0"))

    def _micros(self) -> int:
        if self.rest[0] not in ".,":
            raise ValueError
        self.rest = self.rest[1:]
        return self._take(6)

    def _zone(self) -> int:
        """Read the offset from UTC in minutes."""
        if self.rest[0] == "Z":
            self.rest = self.rest[1:]
            return 0
        match = re.match(r"([+-])(\d\d):(\d\d)", self.rest, re.ASCII)
        if match is None:
            raise ValueError
        self.rest = self.rest[6:]
        minutes = int(match[2]) * 60 + int(match[3])
        if int(match[2]) > 24 or int(match[3]) > 60:
            unit = "hour" if int(match[2]) > 24 else "minute"
            raise TimeError(f"{self._subject}: time zone offset {unit} out of range")
        return -minutes if match[1] == "-" else minutes


def _quoted(text: str) -> str:
    """Quote as Go's time package: bytes outside ASCII are written in hex."""
    return f'"{_UNQUOTABLE.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return f"\\{char}" if char in '"\\' else "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "replace"))

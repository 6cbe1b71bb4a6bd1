"""Index lists of indexed jobs, such as `1,3-5,7`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.integers import parse_int64

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


class IndexesError(ValueError):
    """A list of indexes cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Interval:
    first: int
    last: int


def count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in the list. Raises IndexesError."""
    total, previous = 0, None
    for part in text.split(",") if text else ():
        interval = _interval(part, completions)
        if previous is not None and previous >= interval.first:
            raise IndexesError(f"non-increasing order, previous: {previous}, current: {interval.first}")
        total += interval.last - interval.first + 1
        previous = interval.last
    return total


def first_overlap(text: str, other: str, completions: int) -> int | None:
    """Return the first common index of two lists. Unparsable parts are skipped.

    1-3,8  and  2,9   → 2
    """
    mine, its = _readable(text, completions), _readable(other, completions)
    a, b = next(mine, None), next(its, None)
    while a is not None and b is not None:
        if a.first <= b.last and b.first <= a.last:
            return max(a.first, b.first)
        if a.first <= b.first:
            a = next(mine, None)
        else:
            b = next(its, None)
    return None


def _readable(text: str, completions: int) -> Iterator[Interval]:
    for part in text.split(",") if text else ():
        try:
            yield _interval(part, completions)
        except IndexesError:
            continue


def _interval(text: str, completions: int) -> Interval:
    limits = text.split("-")
    if len(limits) > 2:
        reason = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesError(f"the fragment {quote(text)} {reason}")
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return Interval(first, first)
    last = _index(limits[1], completions)
    if first >= last:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {last}")
    return Interval(first, last)


def _index(text: str, completions: int) -> int:
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > 18:
        raise IndexesError(f"cannot convert string to integer for index: {quote(text)}")
    if (index := parse_int64(text)) >= completions:
        raise IndexesError(f"too large index: {quote(text)}")
    return index

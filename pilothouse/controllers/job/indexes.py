"""Sets of completion indexes as intervals: `1,3-5,7`.

Two adjacent indexes are written `3,4`, three or more `3-5`.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from pilothouse.machinery.dataclass import dataclass

logger = logging.getLogger(__name__)

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Interval:
    first: int
    last: int

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}{',' if self.last == self.first + 1 else '-'}{self.last}"


@dataclass(frozen=True, slots=True)
class Indexes:
    """A set of indexes. Intervals are sorted, disjoint and not adjacent."""

    intervals: tuple[Interval, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.intervals))

    def __len__(self) -> int:
        return sum(interval.last - interval.first + 1 for interval in self.intervals)

    def __contains__(self, index: int) -> bool:
        at = bisect_left(self.intervals, index, key=lambda interval: interval.last)
        return at < len(self.intervals) and self.intervals[at].first <= index

    def __or__(self, other: Indexes) -> Indexes:
        return _joined(sorted((*self.intervals, *other.intervals), key=lambda interval: interval.first))

    def __and__(self, other: Indexes) -> Indexes:
        return Indexes(tuple(_overlaps(self.intervals, other.intervals)))

    def missing(self, below: int) -> Iterator[int]:
        """Yield the indexes below the limit that are not in the set, ascending."""
        candidate = 0
        for interval in self.intervals:
            yield from range(candidate, min(interval.first, below))
            candidate = max(candidate, interval.last + 1)
        yield from range(candidate, below)


def indexes_of(numbers: Iterable[int]) -> Indexes:
    return _joined(Interval(number, number) for number in sorted(numbers))


def parse_indexes(text: str, completions: int) -> Indexes:
    """Parse the indexes below the number of completions; invalid intervals are skipped."""
    intervals: list[Interval] = []
    for part in text.split(",") if text else ():
        limits = part.split("-")
        if not all(map(_INTEGER.fullmatch, limits[:2])):
            interval = None
        else:
            interval = Interval(int(limits[0]), int(limits[min(1, len(limits) - 1)]))
        if interval is None:
            logger.info("Corrupted indexes interval, ignoring: %s", part)
        elif interval.first >= completions:
            break
        else:
            intervals.append(Interval(interval.first, min(interval.last, completions - 1)))
    return _joined(intervals)


def _joined(ordered: Iterable[Interval]) -> Indexes:
    result: list[Interval] = []
    for interval in ordered:
        if not result or interval.first > result[-1].last + 1:
            result.append(interval)
        elif result[-1].last < interval.last:
            result[-1] = Interval(result[-1].first, interval.last)
    return Indexes(tuple(result))


def _overlaps(mine: tuple[Interval, ...], its: tuple[Interval, ...]) -> Iterator[Interval]:
    a = b = 0
    while a < len(mine) and b < len(its):
        first, last = max(mine[a].first, its[b].first), min(mine[a].last, its[b].last)
        if first <= last:
            yield Interval(first, last)
        if mine[a].last < its[b].last:
            a += 1
        else:
            b += 1

"""Time-weighted histogram of a ratio to its limit: an observation per nanosecond."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import accumulate

_NANOSECONDS = 1e9


class TimeHistogram:
    __slots__ = ("_bounds", "_limit", "_seconds", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._limit = 1
        self._seconds = [0.0] * (len(bounds) + 1)  # per bucket
        self._sum = 0.0

    def set_limit(self, limit: int) -> None:
        """Set the limit for later additions; at least 1."""
        self._limit = max(1, limit)

    def add(self, value: int, seconds: float) -> None:
        ratio = value / self._limit
        self._seconds[bisect_left(self._bounds, ratio)] += seconds
        self._sum += ratio * seconds

    def with_more(self, values: Iterable[tuple[int, float]]) -> TimeHistogram:
        """Return a copy with these (value, seconds) pairs added."""
        other = copy(self)
        other._seconds = list(self._seconds)
        for value, seconds in values:
            other.add(value, seconds)
        return other

    def shown(self) -> tuple[list[tuple[str, float]], float]:
        """Return the cumulative buckets by bound, and the sum."""
        names = [*(f"{bound:.15g}" for bound in self._bounds), "+Inf"]
        counts = (float(round(each * _NANOSECONDS)) for each in accumulate(self._seconds))
        return list(zip(names, counts, strict=True)), self._sum * _NANOSECONDS

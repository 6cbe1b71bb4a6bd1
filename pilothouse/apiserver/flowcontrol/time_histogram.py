"""For how long a number was which part of its limit: a histogram with one observation for every nanosecond."""

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
        self._seconds = [0.0] * (len(bounds) + 1)  # in each bucket
        self._sum = 0.0

    def set_limit(self, limit: int) -> None:
        """For what is added from now on. A limit of nothing counts as one."""
        self._limit = max(1, limit)

    def add(self, value: int, seconds: float) -> None:
        ratio = value / self._limit
        self._seconds[bisect_left(self._bounds, ratio)] += seconds
        self._sum += ratio * seconds

    def with_more(self, values: Iterable[tuple[int, float]]) -> TimeHistogram:
        """Return another histogram, to which these values and their seconds are added."""
        other = copy(self)
        other._seconds = list(self._seconds)
        for value, seconds in values:
            other.add(value, seconds)
        return other

    def shown(self) -> tuple[list[tuple[str, float]], float]:
        """Return the buckets by their bounds, each with all below it, and the sum."""
        names = [*(f"{bound:.15g}" for bound in self._bounds), "+Inf"]
        counts = (float(round(each * _NANOSECONDS)) for each in accumulate(self._seconds))
        return list(zip(names, counts, strict=True)), self._sum * _NANOSECONDS

"""For how long a number was which part of its limit: a histogram with one observation for every nanosecond.

A change costs one look for the bucket; what has passed since the last one is added when it is shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate

_NANOSECONDS = 1e9


class TimeHistogram:
    __slots__ = ("_at", "_bounds", "_bucket", "_limit", "_now", "_ratio", "_seconds", "_sum", "_value")

    def __init__(self, bounds: Sequence[float], now: Callable[[], float]) -> None:
        self._bounds = bounds
        self._now = now
        self._at = now()
        self._value = 0
        self._limit = 1
        self._seconds = [0.0] * (len(bounds) + 1)  # in each bucket
        self._sum = 0.0
        self._place()

    def set(self, value: int) -> None:
        if value != self._value:
            self._pass()
            self._value = value
            self._place()

    def add(self, difference: int) -> None:
        self.set(self._value + difference)

    def set_limit(self, limit: int) -> None:
        """A limit of nothing counts as one."""
        self._pass()
        self._limit = max(1, limit)
        self._place()

    def shown(self) -> tuple[list[tuple[str, float]], float]:
        """Return the buckets by their bounds, each with all below it, and the sum; for another thread, too."""
        passed, bucket, ratio = self._now() - self._at, self._bucket, self._ratio
        seconds, total = list(self._seconds), self._sum + ratio * passed
        seconds[bucket] += passed
        names = [*(f"{bound:.15g}" for bound in self._bounds), "+Inf"]
        counts = (float(round(each * _NANOSECONDS)) for each in accumulate(seconds))
        return list(zip(names, counts, strict=True)), total * _NANOSECONDS

    def _pass(self) -> None:
        now = self._now()
        passed = now - self._at
        self._seconds[self._bucket] += passed
        self._sum += self._ratio * passed
        self._at = now

    def _place(self) -> None:
        self._ratio = self._value / self._limit
        self._bucket = bisect_left(self._bounds, self._ratio)

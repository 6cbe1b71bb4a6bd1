"""Time-weighted utilization and seat demand of each priority level, and of reads and writes.

Each request changes the utilization twice, so a change only adds the elapsed time to the ending state:

    enter((1, 0)) enter((2, 0)) enter((1, 0))     {(0, 0): 3.1 s, (1, 0): 0.2 s, (2, 0): 0.1 s}

Histograms and sums are computed when limits change, when many states accumulate, and on scrape. The seat demand is the
basis of borrowing between levels.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from itertools import accumulate
from math import sqrt
from threading import Lock
from typing import TypeAlias

from pilothouse.machinery.dataclass import dataclass

_REMEMBERED = 0.977
"""Decay factor of the smoothed demand per adjustment; upstream's constant."""


@dataclass(frozen=True, slots=True)
class ObservedDemand:
    average: float = 0.0
    deviation: float = 0.0
    high: float = 0.0


class SeatDemand:
    """Time integral of the demand and of its square."""

    def __init__(self) -> None:
        self._begin(0)

    def _begin(self, value: int) -> None:
        self._seconds = self._sum = self._squares = 0.0
        self._high = value

    def add(self, value: int, seconds: float) -> None:
        self._seconds += seconds
        self._sum += value * seconds
        self._squares += value * value * seconds
        self._high = max(self._high, value)

    def reset(self, value: int) -> ObservedDemand:
        """Return the demand since the last call, and restart with the current value."""
        high = max(self._high, value)
        if self._seconds > 0:
            average = self._sum / self._seconds
            deviation = sqrt(max(0.0, self._squares / self._seconds - average * average))
            observed = ObservedDemand(average, deviation, high)
        else:
            observed = ObservedDemand(value, 0.0, high)
        self._begin(value)
        return observed


@dataclass(slots=True)
class DemandStats:
    high: int = 0
    smoothed: float = 0.0
    average: float = 0.0
    deviation: float = 0.0
    """`average` and `deviation` cover the last period only."""

    def update(self, observed: ObservedDemand) -> None:
        """Update the smoothed demand: rises immediately, falls slowly."""
        self.high = round(observed.high)
        self.average, self.deviation = observed.average, observed.deviation
        envelope = observed.average + observed.deviation
        self.smoothed = max(envelope, _REMEMBERED * self.smoothed + (1 - _REMEMBERED) * envelope)


_NANOSECONDS = 1e9


class TimeHistogram:
    """Time-weighted histogram of a ratio to its limit: an observation per nanosecond."""

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


_SEATS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
_DEMAND = (0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6)
_REQUESTS = (0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1)
_BY_KIND = (0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
_MOST_STATES = 1000

State: TypeAlias = tuple[int, ...]
Part: TypeAlias = tuple[tuple[float, ...], Callable[[State], int]]
"""Histogram bounds, and the value of a state."""


class Use:
    """Utilization. Only `shown` is thread-safe; all other methods belong to the event loop."""

    __slots__ = ("__weakref__", "_at", "_histograms", "_now", "_parts", "_seconds", "_settling", "state")

    def __init__(self, state: State, parts: Mapping[str, Part], now: Callable[[], float]) -> None:
        self.state = state
        self._parts = {name: value for name, (_, value) in parts.items()}
        self._histograms = {name: TimeHistogram(bounds) for name, (bounds, _) in parts.items()}
        self._now = now
        self._at = now()
        self._seconds: dict[State, float] = {}  # state → seconds since the last settlement
        self._settling = Lock()

    def enter(self, state: State) -> None:
        now = self._now()
        try:
            self._seconds[self.state] += now - self._at
        except KeyError:
            self._seconds[self.state] = now - self._at
            if len(self._seconds) > _MOST_STATES:
                self._settle()
        self.state, self._at = state, now

    def set_limits(self, **limits: int) -> None:
        """Set the limits of parts by name, from now on."""
        self.enter(self.state)
        self._settle()
        for name, limit in limits.items():
            self._histograms[name].set_limit(limit)

    def shown(self, part: str) -> tuple[list[tuple[str, float]], float]:
        """Return buckets and sum up to now."""
        value = self._parts[part]
        with self._settling:
            seconds, now = [*self._seconds.items(), (self.state, self._now() - self._at)], self._histograms[part]
            return now.with_more((value(state), passed) for state, passed in seconds).shown()

    def _settle(self) -> None:
        with self._settling:
            ended, self._seconds = self._seconds, {}
            for state, seconds in ended.items():
                self._add(state, seconds)

    def _add(self, state: State, seconds: float) -> None:
        for name, value in self._parts.items():
            self._histograms[name].add(value(state), seconds)


class LevelUse(Use):
    """Utilization of a priority level: seats in use, seats requested, executing requests, waiting requests."""

    __slots__ = ("_demand",)

    def __init__(self, now: Callable[[], float]) -> None:
        parts: dict[str, Part] = {
            "seats": (_SEATS, lambda state: state[0]),
            "demand": (_DEMAND, _seats_wanted),
            "executing": (_REQUESTS, lambda state: state[2]),
            "waiting": (_REQUESTS, lambda state: state[3]),
        }
        super().__init__((0, 0, 0, 0), parts, now)
        self._demand = SeatDemand()

    def reset_demand(self) -> ObservedDemand:
        """Return the demand since the last call, and restart."""
        self.enter(self.state)
        self._settle()
        return self._demand.reset(_seats_wanted(self.state))

    def _add(self, state: State, seconds: float) -> None:
        super()._add(state, seconds)
        self._demand.add(_seats_wanted(state), seconds)


def _seats_wanted(state: State) -> int:
    return state[0] + state[1]


class KindUse(Use):
    """Utilization by reads or by writes: executing and waiting requests."""

    __slots__ = ()

    def __init__(self, now: Callable[[], float]) -> None:
        parts: dict[str, Part] = {
            "executing": (_BY_KIND, lambda state: state[0]),
            "waiting": (_BY_KIND, lambda state: state[1]),
        }
        super().__init__((0, 0), parts, now)

    @property
    def count(self) -> int:
        """Return the number of executing requests."""
        return self.state[0]

    def change(self, executing: int, waiting: int = 0) -> None:
        """Adjust the counts by the given differences."""
        now_executing, now_waiting = self.state
        self.enter((now_executing + executing, now_waiting + waiting))

"""Recent seat demand of a priority level, the basis of borrowing between levels."""

from __future__ import annotations

from math import sqrt

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

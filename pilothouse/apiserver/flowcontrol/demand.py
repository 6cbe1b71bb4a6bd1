"""How many seats a priority level has wanted lately: what borrowing between levels goes by."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from pilothouse.machinery.dataclass import dataclass

_REMEMBERED = 0.977
"""The part of the smoothed demand that is left after one adjustment without any; upstream's constant."""


@dataclass(frozen=True, slots=True)
class ObservedDemand:
    average: float = 0.0
    deviation: float = 0.0
    high: float = 0.0


class SeatDemand:
    """The integral over time of a number that changes now and then, and of its square."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._value = 0.0
        self._begin(now())

    def _begin(self, now: float) -> None:
        self._since = self._at = now
        self._sum = self._squares = 0.0
        self._high = self._value

    def set(self, value: float) -> None:
        now = self._now()
        elapsed = now - self._at
        self._sum += self._value * elapsed
        self._squares += self._value * self._value * elapsed
        self._at, self._value = now, value
        if value > self._high:
            self._high = value

    def reset(self) -> ObservedDemand:
        """Return the demand seen since the last call, and begin anew."""
        self.set(self._value)
        duration = self._at - self._since
        if duration > 0:
            average = self._sum / duration
            deviation = sqrt(max(0.0, self._squares / duration - average * average))
            observed = ObservedDemand(average, deviation, self._high)
        else:
            observed = ObservedDemand(self._value, 0.0, self._high)
        self._begin(self._at)
        return observed


@dataclass(slots=True)
class DemandStats:
    high: int = 0
    smoothed: float = 0.0
    average: float = 0.0
    deviation: float = 0.0
    """The last two are those of the last period only."""

    def update(self, observed: ObservedDemand) -> None:
        """Rises at once, and falls slowly."""
        self.high = round(observed.high)
        self.average, self.deviation = observed.average, observed.deviation
        envelope = observed.average + observed.deviation
        self.smoothed = max(envelope, _REMEMBERED * self.smoothed + (1 - _REMEMBERED) * envelope)

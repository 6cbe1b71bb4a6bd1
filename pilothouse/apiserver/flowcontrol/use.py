"""How much of what there is was used, and for how long: by each priority level, and by reads and writes."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.flowcontrol.time_histogram import TimeHistogram

_SEATS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
_DEMAND = (0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6)
_REQUESTS = (0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1)
_BY_KIND = (0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)


class LevelUse:
    """Of one priority level."""

    __slots__ = ("demand", "executing", "seats", "waiting")

    def __init__(self, now: Callable[[], float]) -> None:
        self.seats = TimeHistogram(_SEATS, now)
        self.demand = TimeHistogram(_DEMAND, now)
        self.executing = TimeHistogram(_REQUESTS, now)
        self.waiting = TimeHistogram(_REQUESTS, now)

    def note(self, *, seats: int, seats_waiting: int, executing: int, waiting: int) -> None:
        self.seats.set(seats)
        self.demand.set(seats + seats_waiting)
        self.executing.set(executing)
        self.waiting.set(waiting)

    def set_limits(self, *, seats: int, waiting: int) -> None:
        for histogram in (self.seats, self.demand, self.executing):
            histogram.set_limit(seats)
        self.waiting.set_limit(waiting)


class KindUse:
    """Of reads, or of writes, by the server's requests."""

    __slots__ = ("executing", "waiting")

    def __init__(self, now: Callable[[], float]) -> None:
        self.executing = TimeHistogram(_BY_KIND, now)
        self.waiting = TimeHistogram(_BY_KIND, now)

    def set_limits(self, *, executing: int, waiting: int) -> None:
        self.executing.set_limit(executing)
        self.waiting.set_limit(waiting)

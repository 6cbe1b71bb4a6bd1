"""A work queue with `add_after`: failed items come back later without spinning.

An item waits once: adding it again while it waits only ever brings it forward, never back.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

from pilothouse.client.clock import REAL_CLOCK, Clock, Timer
from pilothouse.client.workqueue.queue import WorkQueue

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

T = TypeVar("T", bound=Hashable)


class DelayingQueue(WorkQueue[T]):
    _ready_at: dict[T, float]  # when each waiting item is due
    _waiting: list[tuple[float, int, T]]  # a heap; an entry whose time is not the item's _ready_at is out of date
    _timer: Timer | None  # fires when the first entry of the heap is due

    def __init__(self, name: str = "", *, registry: CollectorRegistry | None = None, clock: Clock = REAL_CLOCK) -> None:
        super().__init__(name, registry=registry, clock=clock)
        self._ready_at = {}
        self._waiting = []
        self._sequence = itertools.count()
        self._timer = None

    def is_busy(self, within: float) -> bool:
        """Whether there is work to be done, or will be `within` so many seconds."""
        return super().is_busy(within) or (
            bool(self._waiting) and self._waiting[0][0] <= self._clock.now() + within and not self.shutting_down
        )

    def add_after(self, item: T, seconds: float) -> None:
        """Adds the item when the time has passed, or now if there is none. Ignored while shutting down."""
        if self.shutting_down:
            return
        if self._metrics is not None:
            self._metrics.retries += 1
        if seconds <= 0:
            self.add(item)
            return
        ready_at = self._clock.now() + seconds
        if ready_at < self._ready_at.get(item, float("inf")):
            self._ready_at[item] = ready_at
            heapq.heappush(self._waiting, (ready_at, next(self._sequence), item))
            if self._waiting[0][0] == ready_at:
                self._set_timer()

    @property
    def waiting(self) -> int:
        """How many items wait for their time."""
        return len(self._ready_at)

    def shut_down(self) -> None:
        self._stop_waiting()
        super().shut_down()

    async def shut_down_with_drain(self) -> None:
        self._stop_waiting()
        await super().shut_down_with_drain()

    def _stop_waiting(self) -> None:
        """Items whose time has not come are dropped: nothing may be added to a queue that shuts down."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        self._ready_at.clear()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting:
            self._timer = self._clock.call_later(self._waiting[0][0] - self._clock.now(), self._add_ready)

    def _add_ready(self) -> None:
        now = self._clock.now()
        while self._waiting and self._waiting[0][0] <= now:
            ready_at, _, item = heapq.heappop(self._waiting)
            if self._ready_at.get(item) == ready_at:
                del self._ready_at[item]
                self.add(item)
        self._set_timer()

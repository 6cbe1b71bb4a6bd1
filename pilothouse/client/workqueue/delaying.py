"""DelayingQueue: a work queue with `add_after`, so that failed items return later.

A waiting item has one due time. Adding it again may make it due earlier, never later.
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
    _ready_at: dict[T, float]  # due time of each waiting item
    _waiting: list[tuple[float, int, T]]  # heap; an entry is outdated if its time differs from the item's _ready_at
    _timer: Timer | None  # fires when the first entry of the heap is due

    def __init__(self, name: str = "", *, registry: CollectorRegistry | None = None, clock: Clock = REAL_CLOCK) -> None:
        super().__init__(name, registry=registry, clock=clock)
        self._ready_at = {}
        self._waiting = []
        self._sequence = itertools.count()
        self._timer = None

    def is_busy(self, within: float) -> bool:
        """Report whether the queue has work now or `within` seconds."""
        return super().is_busy(within) or (
            bool(self._waiting) and self._waiting[0][0] <= self._clock.now() + within and not self.shutting_down
        )

    def add_after(self, item: T, seconds: float) -> None:
        """Add the item after `seconds`, or immediately if `seconds` ≤ 0. Ignored while shutting down."""
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
        """Number of items waiting for their due time."""
        return len(self._ready_at)

    def shut_down(self) -> None:
        self._stop_waiting()
        super().shut_down()

    async def shut_down_with_drain(self) -> None:
        self._stop_waiting()
        await super().shut_down_with_drain()

    def _stop_waiting(self) -> None:
        """Drop items that are not due yet: a queue that shuts down accepts no items."""
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

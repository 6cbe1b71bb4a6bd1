"""A schedule of keys: one timer for all pods, due keys in order."""

from __future__ import annotations

import asyncio
import heapq
import itertools

from pilothouse.client.clock import Clock, Timer
from pilothouse.client.idleness import register_worker

_TICK = 0.005
"""Keys due within so many seconds are taken together."""


class Agenda:
    """A key is due once: the earliest time since its last take wins."""

    _due: dict[str, float]  # time of the valid heap entry of each key; other entries are void
    _heap: list[tuple[float, int, str]]

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due, self._heap = {}, []
        self._order = itertools.count()
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()  # queued and not yet taken
        self._timer: Timer | None = None
        self._timer_at = 0.0
        register_worker(self)

    @property
    def backlog(self) -> int:
        """Number of keys that are due and not yet taken."""
        return len(self._waiting)

    def is_busy(self, within: float) -> bool:
        """Return whether a key is due now or within so many seconds."""
        return bool(self._waiting) or (bool(self._heap) and self._heap[0][0] <= self._clock.wall() + within)

    def add(self, key: str, at: float | None = None) -> None:
        """Schedule the key. `at`: wall clock seconds; None = now."""
        now = self._clock.wall()
        if at is None or at <= now:
            self._due.pop(key, None)
            self._put(key)
        elif at < self._due.get(key, float("inf")) and key not in self._waiting:
            self._due[key] = at
            heapq.heappush(self._heap, (at, next(self._order), key))
            self._set_timer(at, now)

    def forget(self, key: str) -> None:
        self._due.pop(key, None)

    async def take(self) -> str:
        """Wait for the next due key."""
        key = await self._ready.get()
        self._waiting.discard(key)
        return key

    def _put(self, key: str) -> None:
        if key not in self._waiting:
            self._waiting.add(key)
            self._ready.put_nowait(key)

    def _set_timer(self, at: float, now: float) -> None:
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._clock.call_later(max(at - now, _TICK), self._wake)

    def _wake(self) -> None:
        self._timer = None
        now = self._clock.wall()
        while self._heap and self._heap[0][0] <= now + _TICK / 2:
            at, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == at:
                del self._due[key]
                self._put(key)
        if self._heap:
            self._set_timer(self._heap[0][0], now)

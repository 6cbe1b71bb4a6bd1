"""FakeClock: a Clock for tests whose time advances only with `advance`."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable

from pilothouse.machinery.event_loop import resolve
from pilothouse.machinery.server_time import PendingCall


class FakeClock:
    """Implements Clock. `wait_for_timers` waits until the code under test waits for time."""

    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        self._now = 0.0
        self._epoch = wall
        self._order = itertools.count()
        self._timers: list[tuple[float, int, PendingCall]] = []
        self._armed = asyncio.Event()

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._epoch + self._now

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock, as an administrator or NTP does. Timers are not affected."""
        self._epoch = seconds - self._now

    @property
    def timers(self) -> int:
        """Number of pending timers and sleepers."""
        return sum(not timer.cancelled for _, _, timer in self._timers)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> PendingCall:
        timer = PendingCall(self._now + max(seconds, 0.0), callback)
        heapq.heappush(self._timers, (timer.due, next(self._order), timer))
        self._armed.set()
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: resolve(woken))
        try:
            await woken
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        """Advance time, firing each due timer at its own time, including timers created meanwhile."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            due, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled:
                self._now = max(self._now, due)
                timer.callback()
        self._now = end

    async def wait_for_timers(self, count: int = 1) -> None:
        while self.timers < count:
            self._armed.clear()
            await self._armed.wait()

    async def wait_for_timer(self, seconds: float) -> None:
        """Return when a timer is due exactly `seconds` from now."""
        while not any(timer.due == self._now + seconds and not timer.cancelled for _, _, timer in self._timers):
            self._armed.clear()
            await self._armed.wait()

    def next_timer(self) -> float | None:
        """Return the seconds until the next timer, or None."""
        live = [timer.due for _, _, timer in self._timers if not timer.cancelled]
        return min(live) - self._now if live else None

"""AdjustableTime: a clock for tests, which stop, set, step and accelerate it, with timers.

A step visits every timer in between: each timer fires at its own time, and its effects may complete before time
continues. So a node whose lease is renewed every ten seconds is alive after a step of one hour.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from datetime import UTC, datetime
from typing import Final, TypeAlias

from pilothouse.machinery.server_time import PendingCall

LetWork: TypeAlias = Callable[[], Awaitable[None]]
"""Wait until work started by timers is done, for a bounded time."""

_USUAL_STOPS: Final = 200
_MOST_STOPS: Final = 1000
"""Stops per step; timers in between fire together. A step of half a day stops every 43 seconds."""
_LEAST_STRIDE: Final = 0.25
_LONGEST_WALK: Final = 20.0
"""Seconds of real time; the rest of a long step is jumped."""
_FIRST: Final = datetime(1000, 1, 1, tzinfo=UTC).timestamp()
_LAST: Final = datetime(9700, 1, 1, tzinfo=UTC).timestamp()
_LEASE_STRIDE: Final = 20.0
"""Upper limit of a stride, so that lease renewals are observed in time."""


class TimeTimer(PendingCall):
    def __init__(self, due: float, callback: Callable[[], object], context: Context) -> None:
        super().__init__(due, callback)
        self.context = context


class AdjustableTime:
    """Runs in real time until adjusted. For one event loop."""

    _timers: list[tuple[float, int, TimeTimer]]

    def __init__(self) -> None:
        self.speed = 1.0
        """Seconds that pass per second of real time; 0 while stopped."""
        self._since = self._base = time.monotonic()  # real time and adjustable time at the same moment
        self._offset = time.time() - self._base  # from adjustable monotonic time to wall time
        self._timers, self._order = [], itertools.count()
        self._alarm: asyncio.TimerHandle | None = None

    def monotonic(self) -> float:
        return self._base + (time.monotonic() - self._since) * self.speed

    def wall(self) -> float:
        """Return seconds since the epoch, limited to a range to which any Go duration can be added."""
        return min(max(self.monotonic() + self._offset, _FIRST), _LAST)

    def run_at(self, speed: float) -> None:
        """Continue from now at another speed; 0 stops the clock."""
        self._base, self._since, self.speed = self.monotonic(), time.monotonic(), speed
        self._set_alarm()

    async def set(self, wall: float, let_work: LetWork) -> None:
        """Set the wall time. Moving forward fires all due timers; moving back affects no timer."""
        if (ahead := wall - self.wall()) < 0:
            self._offset += ahead
            return
        self._move_to(self.monotonic() + ahead)
        self._call_due()
        self._set_alarm()
        await let_work()

    async def step(self, seconds: float, let_work: LetWork) -> None:
        """Advance by `seconds`. Returns after all timers in between fired and their work had a chance to complete."""
        end, longest = self.monotonic() + seconds, time.monotonic() + _LONGEST_WALK
        stride = max(_LEAST_STRIDE, min(seconds / _USUAL_STOPS, _LEASE_STRIDE), seconds / _MOST_STOPS)
        while (due := self._next_due()) is not None and due <= end:
            walks = time.monotonic() < longest
            self._move_to(min(max(due, self.monotonic()) + stride, end) if walks else end)
            self._call_due()
            await let_work()
        self._move_to(end)
        self._set_alarm()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> TimeTimer:
        timer = TimeTimer(self.monotonic() + max(seconds, 0.0), callback, copy_context())
        heapq.heappush(self._timers, (timer.due, next(self._order), timer))
        if self._timers[0][2] is timer:
            self._set_alarm()
        return timer

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()

    def _move_to(self, moment: float) -> None:
        """Set the current moment, never backwards: real time may already be past the moment."""
        self._base, self._since = max(moment, self.monotonic()), time.monotonic()

    def _next_due(self) -> float | None:
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def _call_due(self) -> None:
        now = self.monotonic()
        while (due := self._next_due()) is not None and due <= now:
            timer = heapq.heappop(self._timers)[2]
            timer.context.run(asyncio.get_running_loop().call_soon, timer.callback)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        due = self._next_due()
        if due is not None and self.speed > 0:
            wait = max(due - self.monotonic(), 0.0) / self.speed
            self._alarm = asyncio.get_running_loop().call_later(wait, self._fire_alarm)

    def _fire_alarm(self) -> None:
        self._alarm = None
        self._call_due()
        self._set_alarm()

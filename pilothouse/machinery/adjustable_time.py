"""A time that can be stopped, set, stepped and made to run faster, with timers that go by it.

A step is walked, not jumped: every timer on the way is called at its own time, and what it began gets a chance to be
done before time goes on. So a node whose lease is renewed every ten seconds is alive after a step of an hour.
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

LetWork: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when what the timers began is done, or long enough was waited for it."""

_USUAL_STOPS: Final = 200
_MOST_STOPS: Final = 1000
"""On one step; timers in between are called together. Half a day stops every 43 seconds."""
_LEAST_STRIDE: Final = 0.25
_LONGEST_WALK: Final = 20.0
"""Seconds of the machine's; the rest of a long way is jumped."""
_FIRST: Final = datetime(1000, 1, 1, tzinfo=UTC).timestamp()
_LAST: Final = datetime(9700, 1, 1, tzinfo=UTC).timestamp()
_LEASE_STRIDE: Final = 20.0
"""Who renews a lease in time is to be seen to do so."""


class TimeTimer:
    def __init__(self, due: float, callback: Callable[[], object], context: Context) -> None:
        self.due, self.callback, self.context = due, callback, context
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class AdjustableTime:
    """Runs as the machine's time does until told otherwise. For one event loop."""

    _timers: list[tuple[float, int, TimeTimer]]

    def __init__(self) -> None:
        self.speed = 1.0
        """How many of its seconds pass in one of the machine's; 0 while it is stopped."""
        self._since = self._base = time.monotonic()  # the machine's, and ours at that moment
        self._offset = time.time() - self._base  # from ours to the wall's
        self._timers, self._order = [], itertools.count()
        self._alarm: asyncio.TimerHandle | None = None

    def monotonic(self) -> float:
        return self._base + (time.monotonic() - self._since) * self.speed

    def wall(self) -> float:
        """Seconds since 1970, within years to which any Go duration can be added."""
        return min(max(self.monotonic() + self._offset, _FIRST), _LAST)

    def run_at(self, speed: float) -> None:
        """Go on from this moment at another speed; 0 stops."""
        self._base, self._since, self.speed = self.monotonic(), time.monotonic(), speed
        self._set_alarm()

    async def set(self, wall: float, let_work: LetWork) -> None:
        """Make it that time at once: forward with all timers that are due by then, back without any noticing."""
        if (ahead := wall - self.wall()) < 0:
            self._offset += ahead
            return
        self._move_to(self.monotonic() + ahead)
        self._call_due()
        self._set_alarm()
        await let_work()

    async def step(self, seconds: float, let_work: LetWork) -> None:
        """Go on by so many seconds; return when all timers on the way were called, and had a chance to be acted on."""
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
        """Time never goes back: it may have passed the moment by itself."""
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
            self._alarm = asyncio.get_running_loop().call_later(wait, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._call_due()
        self._set_alarm()

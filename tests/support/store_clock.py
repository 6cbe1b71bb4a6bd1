"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio


class ManualClock:
    def __init__(self, now: float = 1_000_000.0) -> None:
        self._now = now
        self._jumped = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []
        self._fell_asleep = asyncio.Event()

    def now(self) -> float:
        return self._now + self._jumped

    def monotonic(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        """Set the wall clock to another time. Nothing else notices."""
        self._jumped += seconds

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, woken))
        self._fell_asleep.set()
        await woken

    async def until_asleep(self, sleepers: int) -> None:
        """Returns when that many sleep: their work is done until the clock moves on."""
        while len(self._sleepers) < sleepers:
            self._fell_asleep.clear()
            await self._fell_asleep.wait()

    def advance(self, seconds: float) -> None:
        """Moves the time on and wakes everyone whose sleep is over."""
        self._now += seconds
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._now]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._now]
        for _, woken in due:
            if not woken.done():
                woken.set_result(None)

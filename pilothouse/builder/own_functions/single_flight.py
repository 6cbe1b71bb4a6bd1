"""One question at a time about the same thing, however many want to know.

first comes            → question 1 begins
second, third come     → both wait for question 2, which begins when 1 is over: 1 may have been answered already
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

Work: TypeAlias = Callable[[], Awaitable[None]]


class SingleFlight:
    """Whoever joins gets what was found out after they came."""

    _last: dict[str, _Flight]  # the last in line for each scope: under way, or waiting for the one that is

    def __init__(self) -> None:
        self._last = {}

    async def join(self, scope: str, work: Work) -> None:
        """Raises what the work raises. Work for which nobody waits any more is cancelled."""
        flight = self._last.get(scope)
        if flight is None or flight.begun:
            flight = self._last[scope] = _Flight(work, after=flight)
            flight.task.add_done_callback(lambda _: self._leave(scope, flight))
        flight.waiting += 1
        try:
            await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._leave(scope, flight)
                flight.task.cancel()

    def _leave(self, scope: str, flight: _Flight) -> None:
        if self._last.get(scope) is flight:
            del self._last[scope]


class _Flight:
    def __init__(self, work: Work, after: _Flight | None) -> None:
        self.begun = False
        self.waiting = 0
        self.task = asyncio.create_task(self._run(work, after))

    async def _run(self, work: Work, after: _Flight | None) -> None:
        if after is not None:
            await asyncio.wait([after.task])
        self.begun = True
        await work()

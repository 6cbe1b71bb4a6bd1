"""Time as the client sees it. Everything that waits takes a Clock, so that tests decide when time passes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from pilothouse.machinery import server_time


class Timer(Protocol):
    """A pending callback. Cancelling one that has fired does nothing."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""

    def wall(self) -> float:
        """Seconds since 1970, for timestamps that others read."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Calls `callback` in the running event loop when `seconds` have passed."""

    async def sleep(self, seconds: float) -> None: ...


class RealClock:
    """The machine's clocks and the running event loop's timers; within a server with --testing, those of the server."""

    now = staticmethod(server_time.monotonic)
    wall = staticmethod(server_time.wall)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return server_time.call_later(seconds, callback)

    async def sleep(self, seconds: float) -> None:
        await server_time.sleep(seconds)


REAL_CLOCK: Clock = RealClock()


def utc_now(clock: Clock) -> datetime:
    """Return the clock's wall time as an aware datetime."""
    return datetime.fromtimestamp(clock.wall(), UTC)


def micro_time(seconds: float) -> str:
    """Return seconds since 1970 as a metav1.MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def done_within(seconds: float, task: asyncio.Future[Any], clock: Clock) -> bool:
    """Waits for the task and says whether it was done in time. A task that was not is cancelled."""
    expired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(seconds, lambda: resolve(expired))
    try:
        await asyncio.wait({task, expired}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        timer.cancel()
        await cancelled(task)


async def cancelled(task: asyncio.Future[Any]) -> None:
    """Cancels the task and returns when it has ended, however it ended."""
    task.cancel()
    await asyncio.wait({task})


def resolve(future: asyncio.Future[None]) -> None:
    """Resolves a future that may have been resolved or cancelled meanwhile."""
    if not future.done():
        future.set_result(None)

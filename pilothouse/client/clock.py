"""Clock of the client. Code that waits takes a Clock, so that tests control time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from pilothouse.machinery import server_time
from pilothouse.machinery.event_loop import resolve


class Timer(Protocol):
    """Pending callback. Cancelling a fired timer is a no-op."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds on a monotonic clock; only differences are meaningful."""

    def wall(self) -> float:
        """Return seconds since the epoch, for timestamps."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` in the running event loop after `seconds`."""

    async def sleep(self, seconds: float) -> None: ...


class RealClock:
    """System clock and timers of the running event loop; in a server with --testing, the server's adjustable clock."""

    now = staticmethod(server_time.monotonic)
    wall = staticmethod(server_time.wall)
    call_later = staticmethod(server_time.call_later)
    sleep = staticmethod(server_time.sleep)


REAL_CLOCK: Clock = RealClock()


def utc_now(clock: Clock) -> datetime:
    """Return the clock's wall time as an aware datetime."""
    return datetime.fromtimestamp(clock.wall(), UTC)


def micro_time(seconds: float) -> str:
    """Format seconds since the epoch as metav1.MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def done_within(seconds: float, task: asyncio.Future[Any], clock: Clock) -> bool:
    """Wait for the task; report whether it finished in time. An unfinished task is cancelled."""
    expired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(seconds, lambda: resolve(expired))
    try:
        await asyncio.wait({task, expired}, return_when=asyncio.FIRST_COMPLETED)
        return task.done()
    finally:
        timer.cancel()
        await cancelled(task)


async def cancelled(task: asyncio.Future[Any]) -> None:
    """Cancel the task and wait until it has ended, with any outcome."""
    task.cancel()
    await asyncio.wait({task})

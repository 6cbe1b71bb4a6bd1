"""The clock of the watch cache, injectable for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from pilothouse.machinery.event_loop import resolve


class CacheTimer(Protocol):
    def cancel(self) -> None: ...


class CacheClock(Protocol):
    def time(self) -> float: ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> CacheTimer: ...


class LoopClock:
    """The clock of the running event loop."""

    def time(self) -> float:
        return asyncio.get_running_loop().time()

    def call_later(self, delay: float, callback: Callable[[], object], /) -> CacheTimer:
        return asyncio.get_running_loop().call_later(delay, callback)


async def wait_for(future: asyncio.Future[None], *, seconds: float | None, clock: CacheClock) -> None:
    """Wait for the future or the timeout; None = no timeout."""
    timer = clock.call_later(seconds, lambda: resolve(future)) if seconds is not None else None
    try:
        await future
    finally:
        if timer is not None:
            timer.cancel()


async def sleep(seconds: float, clock: CacheClock) -> None:
    await wait_for(asyncio.get_running_loop().create_future(), seconds=seconds, clock=clock)

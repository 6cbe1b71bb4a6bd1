"""Clocks of the store: the wall clock for persistent deadlines, a monotonic clock otherwise."""

from __future__ import annotations

from typing import Protocol

from pilothouse.machinery import server_time


class WallClock(Protocol):
    def now(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds of a monotonic clock; only differences are meaningful."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The server's clock: the system clock, except in tests."""

    def now(self) -> float:
        return server_time.wall()

    def monotonic(self) -> float:
        return server_time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await server_time.sleep(seconds)

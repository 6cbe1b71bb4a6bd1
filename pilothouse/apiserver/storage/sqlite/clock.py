"""Time as the store sees it: wall-clock seconds, because deadlines outlive the process that set them."""

from __future__ import annotations

from typing import Protocol

from pilothouse.machinery import server_time


class WallClock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The server's own clock: the machine's, but for tests."""

    def now(self) -> float:
        return server_time.wall()

    async def sleep(self, seconds: float) -> None:
        await server_time.sleep(seconds)

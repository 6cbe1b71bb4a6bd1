"""Time as the store sees it: the wall clock for deadlines in the file, which outlive the process that set them; a clock
that never jumps for everything else."""

from __future__ import annotations

from typing import Protocol

from pilothouse.machinery import server_time


class WallClock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The server's own clock: the machine's, but for tests."""

    def now(self) -> float:
        return server_time.wall()

    def monotonic(self) -> float:
        return server_time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await server_time.sleep(seconds)

"""Time as the store sees it: wall-clock seconds, because deadlines outlive the process that set them."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class WallClock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

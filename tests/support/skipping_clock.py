"""A clock on which short waits take as long as they do, and long ones end when a test skips them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from pilothouse.client.clock import Timer
from pilothouse.machinery.server_time import PendingCall

_LONG = 30.0


class SkippingClock:
    """Implements Clock."""

    def __init__(self) -> None:
        self._skipped = 0.0
        self._long: list[PendingCall] = []

    def now(self) -> float:
        return time.monotonic() + self._skipped

    def wall(self) -> float:
        return time.time() + self._skipped

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        if seconds < _LONG:
            return asyncio.get_running_loop().call_later(seconds, callback)
        timer = PendingCall(self.now() + seconds, callback)
        self._long.append(timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        timer = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def skip(self, seconds: float) -> None:
        self._skipped += seconds
        due = [timer for timer in self._long if timer.due <= self.now()]
        self._long = [timer for timer in self._long if timer not in due]
        for timer in due:
            if not timer.cancelled:
                timer.callback()

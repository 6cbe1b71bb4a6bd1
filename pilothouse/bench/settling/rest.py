"""Whether a server is at rest: nothing is asked of it, no controller has work, and nothing has changed for a moment."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from pilothouse.apiserver.storage.cacher.cachers import cachers_of
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.scope import ServerScope
from pilothouse.bench.traffic import Traffic
from pilothouse.machinery.event_loop import yield_to_loop

_LOOK_EVERY: Final = 0.01
_LEAST_LOOKS: Final = 8
_SOON: Final = 0.5
"""Work that waits for so many seconds at most, such as one more try, is waited for."""
_PATIENCE_WITH_ONE_STOP: Final = 0.25


class Rest:
    def __init__(self, traffic: Traffic, scope: ServerScope, store: Store) -> None:
        self._store = store
        self._traffic = traffic
        self._scope = scope

    def disturbers(self, within: float = _SOON) -> list[str]:
        """Return what still works, by name; empty at rest. While time stands still, nothing comes by itself."""
        within = within if self._scope.time.speed else 0.0
        asked = [f"{count} requests"] if (count := self._traffic.in_flight) else []
        caches = ["watch caches"] if any(cacher.followers_behind for cacher in list(cachers_of(self._store))) else []
        return asked + caches + self._scope.workers.busy(within)

    async def come(self, *, quiet_for: float, timeout: float) -> list[str]:
        """Return when it has been quiet for so long, or who still works when the time is over."""
        end, quiet_since, changes = time.monotonic() + timeout, time.monotonic(), self._traffic.changes
        calm = 0  # looks in a row, so that a machine that is slow is not taken for one that is at rest
        while True:
            now = time.monotonic()
            disturbers = self.disturbers()
            if disturbers or changes != self._traffic.changes:
                quiet_since, changes, calm = now, self._traffic.changes, 0
            elif now - quiet_since >= quiet_for and calm >= _LEAST_LOOKS:
                return []
            calm += 1
            if now >= end:
                return disturbers or ["objects that change all the time"]
            await asyncio.sleep(_LOOK_EVERY)

    async def let_work(self) -> None:
        """Return when what timers have just begun is done, or after a moment."""
        end = time.monotonic() + _PATIENCE_WITH_ONE_STOP
        for _ in range(5):
            await yield_to_loop()
        while self.disturbers(within=0.0) and time.monotonic() < end:  # noqa: ASYNC110  # those who work tell nobody
            await asyncio.sleep(0.001)

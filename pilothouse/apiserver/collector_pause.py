"""No garbage collections while somebody works on a large object, and for a moment after.

A collection stops everybody for as long as it looks at what is new, and of a body of 3 MB there can be a million new
containers. They are JSON, have no cycles, and go by reference counting alone when their request is over: to look at
them is in vain. So that cycles which others made meanwhile go even if large objects never cease to come, the young
ones are looked at now and then, when a piece of work has just ended (docs/decisions/beside-the-loop.md).
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable

_GRACE = 1.0
"""For the copies that watchers make of what was written."""
_AT_LEAST_EVERY = 30.0


class CollectorPause:
    """For one event loop; to be called on it only."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._working = 0
        self._paused = False
        self._collected = 0.0  # when there was a collection last, while it is paused
        self._resuming: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Does nothing where somebody else has switched the collector off."""
        self._working += 1
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        if not self._paused and gc.isenabled():
            gc.disable()
            self._paused, self._collected = True, self._now()

    def end(self) -> None:
        self._working -= 1
        if not self._paused:
            return
        if self._now() - self._collected > _AT_LEAST_EVERY:
            gc.collect(1)
            self._collected = self._now()
        if not self._working:
            self._resuming = asyncio.get_running_loop().call_later(_GRACE, self._resume)

    def _resume(self) -> None:
        self._resuming, self._paused = None, False
        gc.enable()

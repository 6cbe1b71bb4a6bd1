"""No garbage collections while somebody works on a large object, and for a moment after.

A collection stops everybody for as long as it looks at what is new, and of a body of 3 MB there can be a million new
containers. They are JSON, have no cycles, and go by reference counting alone when their request is over: to look at
them is in vain. So that cycles which others made meanwhile go even if large objects never cease to come, what is young
is looked at once in a while, and whenever memory has grown by much (docs/decisions/beside-the-loop.md).
"""

from __future__ import annotations

import asyncio
import gc
import mmap
import time
from pathlib import Path

_GRACE = 1.0
"""For the copies that watchers make of what was written."""
_LOOK_EVERY = 0.25
_LONGEST = 60.0
_MOST_GROWTH = 256 << 20
_STATM = Path("/proc/self/statm")


class CollectorPause:
    """To be called on the event loop only."""

    def __init__(self) -> None:
        self._working = 0
        self._ended = 0.0  # when the last work ended
        self._paused = False
        self._collected = 0.0  # when there was a collection last, while it is paused
        self._resident = 0  # and the memory there was then

    def begin(self) -> None:
        """Does nothing where somebody else has switched the collector off."""
        self._working += 1
        if not self._paused and gc.isenabled():
            gc.disable()
            self._paused = True
            self._note()
            self._look_again()

    def end(self) -> None:
        self._working -= 1
        self._ended = time.monotonic()

    def _look(self) -> None:
        now = time.monotonic()
        if not self._working and now - self._ended > _GRACE:
            self._paused = False
            gc.enable()
            return
        if now - self._collected > _LONGEST or _resident() - self._resident > _MOST_GROWTH:
            gc.collect(1)
            self._note()
        self._look_again()

    def _note(self) -> None:
        self._collected, self._resident = time.monotonic(), _resident()

    def _look_again(self) -> None:
        asyncio.get_running_loop().call_later(_LOOK_EVERY, self._look)


def _resident() -> int:
    """Bytes of memory in use; always 0 where the system does not say."""
    try:
        return int(_STATM.read_bytes().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0

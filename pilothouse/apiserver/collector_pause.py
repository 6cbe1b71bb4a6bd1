"""No garbage collections while somebody works on a large object, and for a moment after.

A collection stops everybody for as long as it looks at what is new, and of a body of 3 MB there can be a million new
containers. They are JSON, have no cycles, and go by reference counting alone when their request is over: to look at
them is in vain. So that cycles which others made meanwhile go even if large objects never cease to come, what is young
is looked at once in a while, and whenever memory has grown by much (docs/decisions/offload.md).
"""

from __future__ import annotations

import gc
import threading
import time

from pilothouse.machinery.platform import resident_memory

_GRACE = 1.0
"""For the copies that watchers make of what was written."""
_LOOK_EVERY = 0.25
_LONGEST = 60.0
_MOST_GROWTH = 256 << 20


class CollectorPause:
    """A thread of its own looks after a pause, so that it ends even if the event loop does."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._working = 0
        self._ended = 0.0  # when the last work ended
        self._paused = False

    def begin(self) -> None:
        """Does nothing where somebody else has switched the collector off."""
        with self._changing:
            self._working += 1
            if self._paused or not gc.isenabled():
                return
            gc.disable()
            self._paused = True
        threading.Thread(target=self._look_after, name="collector-pause", daemon=True).start()

    def end(self) -> None:
        with self._changing:
            self._working -= 1
            self._ended = time.monotonic()

    def _look_after(self) -> None:
        collected, resident = time.monotonic(), _resident()
        while not self._is_over():
            if time.monotonic() - collected > _LONGEST or _resident() - resident > _MOST_GROWTH:
                gc.collect(1)
                collected, resident = time.monotonic(), _resident()
            time.sleep(_LOOK_EVERY)

    def _is_over(self) -> bool:
        with self._changing:
            if self._working or time.monotonic() - self._ended <= _GRACE:
                return False
            self._paused = False
            gc.enable()
            return True


def _resident() -> int:
    """Bytes of memory in use; always 0 where the system does not say."""
    return resident_memory() or 0

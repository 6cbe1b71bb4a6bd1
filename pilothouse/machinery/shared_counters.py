"""64-bit counters in memory shared with processes forked later."""

from __future__ import annotations

import mmap

_WORD = 8


def shared_counters(count: int) -> memoryview:
    """Return `count` counters with value 0. Reads and writes of a counter are atomic."""
    return memoryview(mmap.mmap(-1, _WORD * count)).cast("Q")

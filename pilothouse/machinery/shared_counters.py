"""Numbers that several processes see: those that are forked after the memory was made."""

from __future__ import annotations

import mmap

_WORD = 8


def shared_counters(count: int) -> memoryview:
    """Return that many numbers of 64 bits, all 0. An aligned word is written and read as a whole."""
    return memoryview(mmap.mmap(-1, _WORD * count)).cast("Q")

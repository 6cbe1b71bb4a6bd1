"""Much JSON at once, without the garbage collector looking at all of it again and again.

Parsed JSON has no cycles, so it dies by reference counting alone; but a collector that sees a million new objects
goes through each of them many times while their number grows. Here they are made in a pause and count as old at
once. So that cycles which others made meanwhile do not stay, a full collection follows now and then.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

FULL_COLLECTION_EVERY = 1 << 28  # bytes of JSON; some 200,000 pods


class _Tally:
    parsed = 0  # bytes of JSON since the last full collection
    frozen = False  # the process has frozen objects of its own, which takes long to find out and does not change


@contextmanager
def paused(size: int) -> Iterator[None]:
    """No collections while a block runs that makes objects from `size` bytes of JSON. The block must not await.

    Does nothing in a process that has switched the collector off or froze objects of its own.
    """
    _Tally.frozen = _Tally.frozen or gc.get_freeze_count() > 0
    if not gc.isenabled() or _Tally.frozen:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        _Tally.parsed += size
        if _Tally.parsed > FULL_COLLECTION_EVERY:
            _Tally.parsed = 0
            gc.collect()
        else:
            gc.freeze()
            gc.unfreeze()  # moves everything to the oldest generation, without a look at any of it
        gc.enable()

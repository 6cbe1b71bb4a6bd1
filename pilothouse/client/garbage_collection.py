"""Suspension of the garbage collector while much JSON is parsed.

Parsed JSON has no cycles and is freed by reference counting. A collector that sees a million new objects would traverse
them many times while their number grows. Objects created during a pause move to the oldest generation directly. An
occasional full collection frees cycles created elsewhere.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

FULL_COLLECTION_EVERY = 1 << 28  # bytes of JSON; about 200,000 pods


class _Tally:
    parsed = 0  # bytes of JSON since the last full collection
    frozen = False  # whether the process froze objects itself; cached, because the check is slow


@contextmanager
def paused(size: int) -> Iterator[None]:
    """Suspend collections while the block creates objects from `size` bytes of JSON. The block must not await.

    No-op if the process has disabled the collector or frozen objects itself.
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
            gc.unfreeze()  # moves all objects to the oldest generation without traversal
        gc.enable()

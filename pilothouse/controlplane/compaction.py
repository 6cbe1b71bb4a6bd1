"""Compaction: history older than one interval, and no younger, is dropped from the store.

Several servers on one etcd compact independently: what another has compacted already is no error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pilothouse.apiserver.logs import v
from pilothouse.apiserver.storage.errors import Compacted, StorageError
from pilothouse.apiserver.storage.interface import Store

log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]


async def compact_forever(store: Store, interval: float, *, sleep: Sleep = asyncio.sleep) -> None:
    """Each interval, drops what was history one interval ago."""
    before = 0
    while True:
        await sleep(interval)
        before = await compact_once(store, before)


async def compact_once(store: Store, before: int) -> int:
    """Compacts up to `before` and answers the revision for the next time."""
    try:
        current = await store.current_revision()
        if before:
            await store.compact(before)
            log.log(v(4), "Compacted the store up to revision %d", before)
    except Compacted:
        pass
    except StorageError as error:
        log.warning("Compaction failed and is tried again: %s", error)
        return before
    return current

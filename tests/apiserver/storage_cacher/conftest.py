from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from cacher_harness import ManualClock, running
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def cacher(store: MemoryStore, clock: ManualClock) -> AsyncIterator[Cacher]:
    async with running(store, clock=clock) as cacher:
        yield cacher

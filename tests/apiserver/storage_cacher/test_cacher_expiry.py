"""A watch cache that forgets the past, as it does when a snapshot is restored."""

from __future__ import annotations

import pytest
from cacher_harness import PREFIX, put, ready_events, remove
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.errors import Compacted, TooOld


async def test_a_watch_that_expires_ends_when_it_has_seen_everything(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    watcher = await cacher.watch(PREFIX, after=1, expires=True)
    await remove(store, "a")
    await cacher.expire(2)
    assert (await anext(watcher)).revision == 2
    with pytest.raises(Compacted):
        await anext(watcher)


async def test_other_watches_go_on_and_are_behind_until_they_are_read(store: MemoryStore, cacher: Cacher) -> None:
    watcher = await cacher.watch(PREFIX, after=0, send_initial_events=False)
    await put(store, "a")
    await cacher.expire(1)
    assert cacher.followers_behind == 1
    assert await ready_events(watcher) == [("ADDED", "a", 1)]
    await put(store, "a")
    assert await ready_events(watcher) == [("MODIFIED", "a", 2)]


async def test_no_watch_starts_before_what_was_forgotten(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    await put(store, "a")
    await cacher.expire(2)
    with pytest.raises(TooOld):
        await cacher.watch(PREFIX, after=1)
    assert await ready_events(await cacher.watch(PREFIX, after=2)) == []

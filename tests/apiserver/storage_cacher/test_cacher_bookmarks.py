from __future__ import annotations

import orjson
from cacher_harness import PREFIX, ManualClock, put, ready_events, remove, running, settle
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher


async def test_a_bookmark_comes_every_minute_with_the_revision_of_the_store(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    asked = await cacher.watch(PREFIX, bookmarks=True)
    silent = await cacher.watch(PREFIX)
    await store.create("/registry/secrets/ns/s", b"{}")
    await clock.advance(59)
    assert await ready_events(asked) == []
    await clock.advance(2.2)
    assert await ready_events(asked) == [("BOOKMARK", "", 1)]
    await clock.advance(62.2)
    assert await ready_events(asked) == [("BOOKMARK", "", 1)]
    assert await ready_events(silent) == []


async def test_a_bookmark_has_no_annotation_and_is_shared(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    watchers = [await cacher.watch(PREFIX, bookmarks=True) for _ in range(2)]
    await put(store, "a")
    await clock.advance(61.2)
    (_, one), (_, other) = (watcher.drain() for watcher in watchers)
    assert one is other
    assert orjson.loads(one.object.wire)["metadata"] == {"resourceVersion": "1"}


async def test_a_bookmark_comes_shortly_before_the_deadline(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    watcher = await cacher.watch(PREFIX, bookmarks=True, deadline=clock.time() + 10)
    await put(store, "a")
    assert len(await ready_events(watcher)) == 1
    await clock.advance(7.9)
    assert await ready_events(watcher) == []
    await clock.advance(1.3)
    assert await ready_events(watcher) == [("BOOKMARK", "", 1)]
    assert clock.running == 0


async def test_a_watch_of_a_second_gets_no_bookmark(store: MemoryStore, cacher: Cacher, clock: ManualClock) -> None:
    watcher = await cacher.watch(PREFIX, bookmarks=True, deadline=clock.time() + 1)
    await put(store, "a")
    await clock.advance(100)
    assert await ready_events(watcher) == [("ADDED", "a", 1)]


async def test_a_bookmark_says_nothing_that_the_watch_did_not_start_with(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    await put(store, "a")
    await settle()
    future = await cacher.watch(PREFIX, after=5, bookmarks=True)
    await clock.advance(61.2)
    assert await ready_events(future) == []


async def test_a_bookmark_does_not_overtake_events_that_are_still_queued(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    for number in range(400):
        await put(store, f"n{number:03}")
    watcher = await cacher.watch(PREFIX, bookmarks=True)
    await put(store, "z")
    await clock.advance(61.2)
    types = [(await anext(watcher)).type for _ in range(402)]
    assert types == ["ADDED"] * 401 + ["BOOKMARK"]


async def test_a_bookmark_does_not_claim_a_write_that_the_watch_has_not_delivered(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    watcher = await cacher.watch(PREFIX, bookmarks=True)
    await put(store, "a")
    await settle()
    store.hold()
    await remove(store, "a")
    await clock.advance(61.2)
    assert await ready_events(watcher) == [("ADDED", "a", 1), ("BOOKMARK", "", 1)]


async def test_a_full_watcher_is_spared_the_bookmark(store: MemoryStore, clock: ManualClock) -> None:
    async with running(store, clock=clock, watch_buffer=1) as cacher:
        watcher = await cacher.watch(PREFIX, bookmarks=True)
        await put(store, "a")
        await clock.advance(61.2)
        assert not watcher.closed
        assert await ready_events(watcher) == [("ADDED", "a", 1)]


async def test_thousands_of_watchers_share_a_few_timers(cacher: Cacher, clock: ManualClock) -> None:
    for _ in range(2000):
        await cacher.watch(PREFIX, bookmarks=True)
    assert clock.running <= 1

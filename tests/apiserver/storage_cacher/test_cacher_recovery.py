from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from cacher_harness import CODEC, CONFIG_MAPS, PREFIX, ManualClock, key, put, ready_events, remove, running, settle
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.errors import CacheNotReady, TooOld


async def test_a_broken_watch_ends_all_watchers_and_heals(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    watcher = await cacher.watch(PREFIX)
    await put(store, "a")
    await settle()
    store.break_watches()
    await settle()
    assert not cacher.ready
    assert [event.revision async for event in watcher] == [1]
    await put(store, "b")
    await clock.advance(0.2)
    assert cacher.ready
    assert await ready_events(await cacher.watch(PREFIX)) == [("ADDED", "a", 1), ("ADDED", "b", 2)]


async def test_a_compacted_watch_is_followed_by_a_new_listing(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    await put(store, "a")
    await settle()
    store.hold()
    await put(store, "b")
    await remove(store, "a")
    await store.compact(3)
    store.release()
    await clock.advance(0.2)
    assert cacher.ready
    assert [obj.key for obj in (await cacher.list(PREFIX)).objects] == [key("b")]
    with pytest.raises(TooOld, match=r"too old resource version: 2 \(3\)"):
        await cacher.watch(PREFIX, after=2)


async def test_clients_resume_after_a_relist_from_its_revision_on(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    await put(store, "a")
    await settle()
    store.break_watches()
    await clock.advance(0.2)
    await put(store, "b")
    assert await ready_events(await cacher.watch(PREFIX, after=1)) == [("ADDED", "b", 2)]


async def test_retries_come_ever_later_but_not_later_than_five_seconds(
    store: MemoryStore, cacher: Cacher, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.unavailable = True
    store.break_watches()
    attempts: list[float] = []
    original = store.list

    async def counting(*args: Any, **options: Any) -> object:
        attempts.append(clock.time())
        return await original(*args, **options)

    monkeypatch.setattr(store, "list", counting)
    await clock.advance(60)
    waits = [later - earlier for earlier, later in pairwise(attempts)]
    assert waits[0] < 0.5
    assert max(waits) <= 5.0
    assert len(attempts) < 40
    store.unavailable = False
    await clock.advance(5.1)
    assert cacher.ready


async def test_a_read_that_waits_while_the_cache_is_lost_is_still_right(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    store.hold()
    await put(store, "a")
    getting = asyncio.create_task(cacher.get(key("a")))
    listing = asyncio.create_task(cacher.list(PREFIX, not_older_than=1))
    await settle()
    store.break_watches()
    await clock.advance(0.2)
    found = await getting
    assert found is not None
    assert [obj.key for obj in (await listing).objects] == [key("a")]


async def test_watches_are_refused_while_the_cache_can_not_be_filled(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    store.unavailable = True
    store.break_watches()
    await clock.advance(0.1)
    starting = asyncio.create_task(cacher.watch(PREFIX, after=1))
    await clock.advance(1.1)
    with pytest.raises(CacheNotReady):
        await starting
    await clock.advance(60)
    later = asyncio.create_task(cacher.watch(PREFIX, after=1))
    await clock.advance(1.1)
    with pytest.raises(CacheNotReady) as refused:
        await later
    assert refused.value.retry_after == 30


async def test_requests_before_the_first_fill_wait_for_it(store: MemoryStore, clock: ManualClock) -> None:
    await put(store, "a")
    store.unavailable = True
    starting = asyncio.create_task(_start(store, clock))
    await settle()
    store.unavailable = False
    await clock.advance(0.2)
    assert await starting == 1


async def _start(store: MemoryStore, clock: ManualClock) -> int:
    async with running(store, clock=clock) as cacher:
        return len((await cacher.list(PREFIX, not_older_than=0)).objects)


async def test_large_resources_are_listed_page_by_page_at_one_revision(store: MemoryStore, clock: ManualClock) -> None:
    store.revision = 1
    for number in range(10_001):
        await store.create(key(f"n{number:05}"), b"{}")
    async with running(store, clock=clock) as cacher:
        page = await cacher.list(PREFIX, not_older_than=0)
        assert len(page.objects) == 10_001
        assert len(store.reads) == 2


async def test_a_stopped_cache_refuses_lists(store: MemoryStore, clock: ManualClock) -> None:
    async with running(store, clock=clock) as cacher:
        pass
    with pytest.raises(CacheNotReady, match="stopped"):
        await cacher.list(PREFIX, not_older_than=0)


async def test_whoever_waits_for_the_first_fill_learns_that_it_is_stopped(
    store: MemoryStore, clock: ManualClock
) -> None:
    store.unavailable = True
    cacher = Cacher(store, PREFIX, CODEC, resource=CONFIG_MAPS, clock=clock)
    await cacher.start()
    waiting = asyncio.create_task(cacher.wait_ready())
    await settle()
    await cacher.stop()
    with pytest.raises(CacheNotReady):
        await waiting

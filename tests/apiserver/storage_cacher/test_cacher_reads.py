from __future__ import annotations

import asyncio

import pytest
from cacher_harness import ManualClock, key, put, remove, running, settle, text_of
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.errors import TooLargeRevision, Unavailable


async def test_a_get_is_answered_without_reading_the_store(store: MemoryStore, cacher: Cacher) -> None:
    written = await put(store, "a", text="x")
    await settle()
    store.reads.clear()
    found = await cacher.get(key("a"))
    assert found is not None
    assert (found.revision, text_of(found)) == (written.modified, "x")
    assert await cacher.get(key("b")) is None
    assert store.reads == []


async def test_a_get_sees_a_write_that_the_watch_has_not_delivered(store: MemoryStore, cacher: Cacher) -> None:
    store.hold()
    await put(store, "a", text="new")
    reading = asyncio.create_task(cacher.get(key("a")))
    await settle()
    assert not reading.done()
    store.release()
    found = await reading
    assert found is not None
    assert text_of(found) == "new"


async def test_a_get_after_a_write_to_another_resource_only_needs_progress(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    await settle()
    await store.create("/registry/secrets/ns/s", b"{}")
    store.reads.clear()
    assert await cacher.get(key("a")) is not None
    assert cacher.revision == store.revision
    assert store.reads == []


async def test_a_get_reads_the_store_when_it_keeps_silent_about_progress(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    store.answers_progress = False
    store.hold()
    await put(store, "a", text="new")
    reading = asyncio.create_task(cacher.get(key("a")))
    await clock.advance(0.29)
    assert not reading.done()
    await clock.advance(0.02)
    found = await reading
    assert found is not None
    assert text_of(found) == "new"
    assert store.progress_requests >= 3


async def test_a_store_that_kept_silent_is_not_waited_for_again_until_it_answers(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    store.answers_progress = False
    await store.create("/registry/secrets/ns/s", b"{}")
    first = asyncio.create_task(cacher.get(key("a")))
    await clock.advance(0.31)
    await first
    second = asyncio.create_task(cacher.get(key("a")))
    await clock.advance(0.03)
    assert second.done()

    store.answers_progress = True
    await cacher.get(key("a"))
    store.answers_progress = False
    await store.create("/registry/secrets/ns/t", b"{}")
    third = asyncio.create_task(cacher.get(key("a")))
    await clock.advance(0.03)
    assert not third.done()
    await clock.advance(0.3)
    assert third.done()


async def test_a_get_of_any_revision_does_not_ask_the_store_at_all(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a", text="old")
    await settle()
    store.hold()
    await put(store, "a", text="new")
    store.unavailable = True
    found = await cacher.get(key("a"), not_older_than=0)
    assert found is not None
    assert text_of(found) == "old"


async def test_a_get_of_a_revision_waits_until_the_cache_has_it(store: MemoryStore, cacher: Cacher) -> None:
    reading = asyncio.create_task(cacher.get(key("a"), not_older_than=2))
    await put(store, "a", text="1")
    await settle()
    assert not reading.done()
    await put(store, "a", text="2")
    found = await reading
    assert found is not None
    assert text_of(found) == "2"


async def test_a_get_of_a_revision_that_does_not_come_is_refused_after_three_seconds(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    await put(store, "a")
    reading = asyncio.create_task(cacher.get(key("a"), not_older_than=100))
    await clock.advance(2.9)
    assert not reading.done()
    await clock.advance(0.2)
    with pytest.raises(TooLargeRevision, match="Too large resource version: 100, current: 1"):
        await reading


async def test_a_get_before_the_cache_is_filled_reads_the_store(store: MemoryStore, clock: ManualClock) -> None:
    await put(store, "a", text="x")
    async with running(store, clock=clock) as cacher:
        store.break_watches()
        store.unavailable = True
        await clock.advance(1)
        assert not cacher.ready
        with pytest.raises(Unavailable):
            await cacher.get(key("a"))
        store.unavailable = False
        found = await cacher.get(key("a"), not_older_than=0)
        assert found is not None
        assert not cacher.ready
        with pytest.raises(TooLargeRevision):
            await cacher.get(key("a"), not_older_than=7)


async def test_a_deleted_object_is_gone_at_once(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    await remove(store, "a")
    assert await cacher.get(key("a")) is None


async def test_cancelled_reads_leave_nothing_behind(store: MemoryStore, cacher: Cacher, clock: ManualClock) -> None:
    before = clock.running
    reading = asyncio.create_task(cacher.get(key("a"), not_older_than=9))
    await settle()
    reading.cancel()
    await asyncio.wait([reading])
    assert clock.running == before

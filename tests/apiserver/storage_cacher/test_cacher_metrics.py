from __future__ import annotations

import asyncio

from cacher_harness import PREFIX, ManualClock, labelled, put, running, settle
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.metrics import REGISTRY

LABELS = {"group": "", "resource": "configmaps"}


def sample(name: str, **more: str) -> float:
    return REGISTRY.get_sample_value(name, LABELS | more) or 0.0


async def test_a_watcher_that_was_too_slow_is_counted(store: MemoryStore, clock: ManualClock) -> None:
    before = sample("apiserver_terminated_watchers_total")
    async with running(store, clock=clock, watch_buffer=1) as cacher:
        await cacher.watch(PREFIX)
        await put(store, "a")
        await put(store, "b")
        await put(store, "c")
        await settle()
    assert sample("apiserver_terminated_watchers_total") == before + 1


async def test_lists_are_counted_with_what_they_read_and_returned(store: MemoryStore, clock: ManualClock) -> None:
    names = ["apiserver_cache_list_fetched_objects_total", "apiserver_cache_list_total"]
    before = [sample(name, index="") for name in names]
    returned = sample("apiserver_cache_list_returned_objects_total")
    async with running(store, clock=clock) as cacher:
        for name in "abc":
            await put(store, name, odd=str(name != "b"))
        await cacher.list(PREFIX, matches=labelled("odd", "True"))
    assert [sample(name, index="") for name in names] == [before[0] + 3, before[1] + 1]
    assert sample("apiserver_cache_list_returned_objects_total") == returned + 2


async def test_events_fillings_waits_and_the_revision_are_reported(store: MemoryStore, clock: ManualClock) -> None:
    received = sample("apiserver_watch_cache_events_received_total")
    dispatched = sample("apiserver_watch_cache_events_dispatched_total")
    filled = sample("apiserver_watch_cache_initializations_total")
    waited = sample("apiserver_watch_cache_read_wait_seconds_count")
    initial = sample("apiserver_init_events_total")
    async with running(store, clock=clock) as cacher:
        store.revision = 10**15 + 6
        await put(store, "a")
        await cacher.list(PREFIX)
        await cacher.watch(PREFIX, after=0)
    assert sample("apiserver_watch_cache_events_received_total") == received + 1
    assert sample("apiserver_watch_cache_events_dispatched_total") == dispatched + 1
    assert sample("apiserver_watch_cache_initializations_total") == filled + 1
    assert sample("apiserver_watch_cache_read_wait_seconds_count") == waited + 1
    assert sample("apiserver_init_events_total") == initial + 1
    assert sample("apiserver_watch_cache_resource_version") == 7


async def test_consistent_lists_say_whether_they_fell_back_to_the_store(store: MemoryStore, clock: ManualClock) -> None:
    def read() -> list[float]:
        name = "apiserver_watch_cache_consistent_read_total"
        return [sample(name, success="true", fallback=fallback) for fallback in ("false", "true")]

    before = read()
    async with running(store, clock=clock) as cacher:
        await cacher.list(PREFIX)
        store.answers_progress = False
        store.hold()
        await put(store, "a")
        listing = asyncio.create_task(cacher.list(PREFIX))
        await clock.advance(0.31)
        await listing
    assert read() == [before[0] + 1, before[1] + 1]

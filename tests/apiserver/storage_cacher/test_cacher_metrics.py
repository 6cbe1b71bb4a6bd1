from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from cacher_harness import CODEC, CONFIG_MAPS, PREFIX, ManualClock, labelled, put, remove, running, settle
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.direct_reader import DirectReader
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.selection import ListSelection
from pilothouse.apiserver.tallies import REGISTRY

LABELS = {"group": "", "resource": "configmaps"}


@pytest.fixture(autouse=True)
def _another_cache() -> Iterator[CacheMetrics]:
    """The series of a resource end with its last cache: they are looked at when the cache of a test has stopped."""
    metrics = CacheMetrics(CONFIG_MAPS)
    yield metrics
    metrics.release()


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


async def test_lists_that_the_store_answers_are_counted_with_what_was_read_tested_and_returned(
    store: MemoryStore,
) -> None:
    def read() -> list[float]:
        names = ("", "_fetched_objects", "_evaluated_objects", "_returned_objects")
        return [sample(f"apiserver_storage_list{name}_total") for name in names]

    for name in "abc":
        await put(store, name, odd=str(name != "b"))
    before = read()
    direct = DirectReader(store, CODEC, CacheMetrics(CONFIG_MAPS))
    await direct.list(ListSelection(PREFIX, limit=1, matches=labelled("odd", "False")))
    assert [now - then for now, then in zip(read(), before, strict=True)] == [1, 3, 2, 1]


async def test_the_size_of_all_objects_is_that_of_what_is_stored_of_them(store: MemoryStore) -> None:
    async with running(store) as cacher:
        await put(store, "a")
        await cacher.list(PREFIX)
        one = sample("apiserver_resource_size_estimate_bytes")
        await put(store, "b")
        await put(store, "a")
        await cacher.list(PREFIX)
        assert sample("apiserver_resource_size_estimate_bytes") == 2 * one > 0
        await remove(store, "a")
        await cacher.list(PREFIX)
        assert sample("apiserver_resource_size_estimate_bytes") == one


async def test_a_resource_that_is_gone_leaves_no_series_behind(store: MemoryStore) -> None:
    gone = replace(CONFIG_MAPS, resource="widgets")
    first, second = (Cacher(store, PREFIX, CODEC, resource=gone) for _ in range(2))
    for cacher in (first, second):
        await cacher.start()
        await cacher.wait_ready()
        await cacher.list(PREFIX)
    await put(store, "a")
    await settle()
    await first.stop()
    assert _series_of("widgets")
    await second.stop()
    assert _series_of("widgets") == set()


def _series_of(resource: str) -> set[str]:
    samples = (sample for family in REGISTRY.collect() for sample in family.samples)
    about_caches = (
        each for each in samples if "cache" in each.name or "resource_" in each.name or "events" in each.name
    )
    return {each.name for each in about_caches if each.labels.get("resource") == resource}

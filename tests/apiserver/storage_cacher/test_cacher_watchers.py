from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest
from cacher_harness import PREFIX, ManualClock, key, labelled, put, running, settle
from cacher_memory_store import MemoryStore
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.events import WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import LIVE_BYTES, CacheWatcher


async def test_a_watcher_that_is_full_ends_and_the_others_go_on(store: MemoryStore, clock: ManualClock) -> None:
    async with running(store, clock=clock, watch_buffer=3) as cacher:
        slow, quick = await cacher.watch(PREFIX), await cacher.watch(PREFIX)
        seen: list[WatchEvent] = []

        async def read() -> None:
            async for event in quick:
                seen.extend([event, *quick.drain()])

        reading = asyncio.create_task(read())
        for number in range(10):
            await put(store, f"n{number}")
            await settle()
        assert [event.revision for event in seen] == list(range(1, 11))
        assert slow.closed
        assert [event.revision async for event in slow] == [1, 2, 3]
        quick.close()
        await reading


async def test_a_watcher_that_holds_too_many_bytes_ends(cacher: Cacher, store: MemoryStore) -> None:
    slow = await cacher.watch(PREFIX)
    for number in range(24):
        await put(store, f"n{number}", filler="x" * (1 << 20))
        await settle()
    assert slow.closed
    held = [event async for event in slow]
    assert sum(event.size for event in held) <= LIVE_BYTES
    assert len(held) == 15


async def test_what_was_read_makes_room_again(cacher: Cacher, store: MemoryStore) -> None:
    watcher = await cacher.watch(PREFIX)
    for number in range(24):
        await put(store, f"n{number}", filler="x" * (1 << 20))
        await settle()
        await anext(watcher)
    assert not watcher.closed


async def test_a_long_batch_does_not_overrun_those_who_read(store: MemoryStore, cacher: Cacher) -> None:
    watcher = await cacher.watch(PREFIX)
    store.hold()
    for number in range(2500):
        await put(store, f"n{number}")

    async def read() -> list[int]:
        return [(await anext(watcher)).revision for _ in range(2500)]

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    store.release()
    assert await reading == list(range(1, 2501))


async def test_initial_events_do_not_count_against_the_buffer(store: MemoryStore, clock: ManualClock) -> None:
    for number in range(700):
        await put(store, f"n{number:03}")
    async with running(store, clock=clock, watch_buffer=2) as cacher:
        watcher = await cacher.watch(PREFIX)
        await put(store, "z1")
        await put(store, "z2")
        names = [(await anext(watcher)).object.key for _ in range(702)]
        assert names == sorted(names)
        assert not watcher.closed


async def test_a_watch_over_many_objects_that_do_not_match_finds_the_one_that_does(
    store: MemoryStore, cacher: Cacher
) -> None:
    for number in range(600):
        await put(store, f"n{number:03}", last=str(number == 599))
    watcher = await cacher.watch(PREFIX, predicate=labelled("last", "True"))
    assert (await anext(watcher)).object.key == key("n599")


async def test_an_unreadable_object_ends_the_watches_that_must_look_at_it(store: MemoryStore, cacher: Cacher) -> None:
    selecting = await cacher.watch(PREFIX, predicate=labelled("a", "b"))
    plain = await cacher.watch(PREFIX)
    await store.create(key("a"), b"no json")
    await settle()
    with pytest.raises(ValueError):
        await anext(selecting)
    assert (await anext(plain)).revision == 1
    late = await cacher.watch(PREFIX, predicate=labelled("a", "b"))
    with pytest.raises(ValueError):
        await anext(late)
    with pytest.raises(StopAsyncIteration):
        await anext(late)


async def test_an_abandoned_watcher_is_forgotten(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    watcher = await cacher.watch(PREFIX)
    watcher.abandon()
    await put(store, "b")
    await settle()
    assert watcher.drain() == []
    with pytest.raises(StopAsyncIteration):
        await anext(watcher)


async def test_stopping_ends_every_watch(store: MemoryStore, clock: ManualClock) -> None:
    async with running(store, clock=clock) as cacher:
        watcher = await cacher.watch(PREFIX, bookmarks=True)
        reading = asyncio.create_task(anext(watcher))
        await settle()
    with pytest.raises(StopAsyncIteration):
        await reading
    assert store.watches == set()
    assert clock.running == 0


async def test_a_cancelled_reader_loses_no_event(store: MemoryStore, cacher: Cacher) -> None:
    watcher = await cacher.watch(PREFIX)
    reading = asyncio.create_task(anext(watcher))
    await settle()
    reading.cancel()
    await asyncio.wait([reading])
    await put(store, "a")
    assert (await anext(watcher)).revision == 1


async def _read(watcher: CacheWatcher, seen: list[int]) -> None:
    async for event in watcher:
        seen.extend(each.revision for each in [event, *watcher.drain()])


async def test_the_events_of_one_turn_are_pushed_together_and_wake_nobody(cacher: Cacher, store: MemoryStore) -> None:
    watcher, pushed, read = await cacher.watch(PREFIX), list[list[int]](), list[int]()

    def push(events: Sequence[WatchEvent]) -> bool:
        pushed.append([event.revision for event in events])
        return True

    watcher.push = push
    reading = asyncio.create_task(_read(watcher, read))
    await settle()
    store.hold()
    for number in range(3):
        await put(store, f"n{number}")
    store.release()
    await settle()
    await put(store, "n3")
    await settle()
    assert (pushed, read) == ([[1, 2, 3], [4]], [])
    watcher.close()
    await reading


@given(st.lists(st.sampled_from(["put", "settle", "accept", "refuse"]), max_size=40), st.booleans())
async def test_each_event_is_pushed_or_read_once_and_in_order(steps: list[str], accepts: bool) -> None:
    store, seen, accepting = MemoryStore(), list[int](), [accepts]
    async with running(store, clock=ManualClock()) as cacher:
        watcher = await cacher.watch(PREFIX)

        def push(events: Sequence[WatchEvent]) -> bool:
            if accepting[0]:
                seen.extend(event.revision for event in events)
            return accepting[0]

        watcher.push = push
        reading = asyncio.create_task(_read(watcher, seen))
        for number, step in enumerate(steps):
            if step == "put":
                await put(store, f"n{number}")
            elif step == "settle":
                await settle()
            else:
                accepting[0] = step == "accept"
        await settle()
        watcher.close()
        await reading
    assert seen == list(range(1, steps.count("put") + 1))


async def test_pushing_to_many_watchers_lets_others_run_in_between(cacher: Cacher, store: MemoryStore) -> None:
    watchers = [await cacher.watch(PREFIX) for _ in range(64)]
    pushed, between = list[CacheWatcher](), list[int]()

    def slow_push(watcher: CacheWatcher) -> bool:
        time.sleep(0.001)
        pushed.append(watcher)
        return True

    for watcher in watchers:
        watcher.push = lambda _, watcher=watcher: slow_push(watcher)
    reading = [asyncio.create_task(_read(watcher, [])) for watcher in watchers]
    await settle()
    await put(store, "a")
    while len(pushed) < len(watchers):
        await asyncio.sleep(0)
        between.append(len(pushed))
    assert any(0 < count < len(watchers) for count in between)
    for watcher in watchers:
        watcher.close()
    await asyncio.gather(*reading)

"""The watch cache on the embedded store, with its threads, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cacher_harness import PREFIX, key, labelled, put, remove, running

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.events import Predicate
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.sqlite.store import SqliteStore


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "data")
    yield store
    await store.close()


async def world_of(watcher: CacheWatcher, last: Revision) -> dict[str, Revision]:
    """What a client that believes its events holds when it has seen the revision."""
    world: dict[str, Revision] = {}
    seen = 0
    async for event in watcher:
        if event.type == "DELETED":
            del world[event.object.key]
        elif event.type != "BOOKMARK":
            assert (event.object.key in world) == (event.type == "MODIFIED")
            world[event.object.key] = event.object.revision
        seen = max(seen, event.revision)
        if seen >= last:
            return world
    raise AssertionError("the watch ended early")


async def test_every_read_sees_the_write_before_it_while_others_write(sqlite: SqliteStore) -> None:
    async def write_and_read(cacher: Cacher, writer: int) -> None:
        for turn in range(15):
            written = await put(sqlite, f"w{writer}", text=str(turn))
            found = await cacher.get(key(f"w{writer}"))
            assert found is not None
            assert found.revision == written.modified
            page = await cacher.list(f"{PREFIX}ns/")
            assert page.revision >= written.modified
            assert [obj.revision for obj in page.objects if obj.key == found.key] == [written.modified]

    async with running(sqlite) as cacher:
        await asyncio.gather(*(write_and_read(cacher, writer) for writer in range(6)))


async def test_watches_begun_at_any_time_end_in_the_state_that_a_list_shows(sqlite: SqliteStore) -> None:
    async def churn(writer: int) -> None:
        for turn in range(20):
            await put(sqlite, f"w{writer}-{turn % 3}", even=str(turn % 2 == 0))
            if turn % 5 == 4:
                await remove(sqlite, f"w{writer}-{turn % 3}")

    even = labelled("even", "True")
    async with running(sqlite) as cacher:
        writing = [asyncio.create_task(churn(writer)) for writer in range(4)]
        watchers: list[tuple[Predicate | None, CacheWatcher]] = []
        while not all(task.done() for task in writing):
            watchers.append((None, await cacher.watch(PREFIX, send_initial_events=True, bookmarks=True)))
            watchers.append((even, await cacher.watch(PREFIX, predicate=even)))
            await asyncio.wait(writing, timeout=0.005)
        await asyncio.gather(*writing)
        last = (await put(sqlite, "zz-last", even="True")).modified
        for predicate, watcher in watchers:
            page = await cacher.list(PREFIX, matches=predicate)
            assert await world_of(watcher, last) == {obj.key: obj.revision for obj in page.objects}


async def test_the_past_is_shown_until_it_is_compacted(sqlite: SqliteStore) -> None:
    first = await put(sqlite, "a", text="old")
    async with running(sqlite) as cacher:
        newer = await put(sqlite, "a", text="new")
        page = await cacher.list(PREFIX, at=first.modified)
        assert [obj.revision for obj in page.objects] == [first.modified]
    async with running(sqlite) as cacher:
        assert [obj.revision for obj in (await cacher.list(PREFIX, at=first.modified)).objects] == [first.modified]
        await sqlite.compact(newer.modified)
        with pytest.raises(Compacted):
            await cacher.list(PREFIX, at=first.modified)


async def test_closing_the_store_ends_the_watches(sqlite: SqliteStore) -> None:
    async with running(sqlite) as cacher:
        watcher = await cacher.watch(PREFIX)
        reading = asyncio.create_task(anext(watcher))
        await sqlite.close()
        with pytest.raises(StopAsyncIteration):
            await reading
        assert not cacher.ready

"""Compaction by the clock, and what it leaves in the file."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from store_clock import ManualClock
from store_reading import next_batch

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Entry, Page
from pilothouse.apiserver.storage.sqlite.schema import connect, read_meta
from pilothouse.apiserver.storage.sqlite.store import SqliteStore


def _rows(directory: Path) -> list[int]:
    connection = sqlite3.connect(directory / "store.db")
    rows = [revision for (revision,) in connection.execute("SELECT revision FROM history ORDER BY revision")]
    connection.close()
    return rows


async def _rewrite(store: SqliteStore, key: str, times: int = 4) -> list[Entry]:
    versions = [await store.create(key, b"0")]
    for i in range(1, times):
        versions.append(await store.update(key, b"%d" % i, expected=versions[-1].modified))
    return versions


async def _rewrite_many(store: SqliteStore, prefix: str) -> list[Entry]:
    """More changes than one step of a sweep looks at. Answers what is left, in key order."""
    versions = await asyncio.gather(*(_rewrite(store, f"{prefix}{i:03}") for i in range(200)))
    return [each[-1] for each in versions]


async def test_only_rows_that_are_still_needed_stay_in_the_file(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    kept = await _rewrite_many(store, "/registry/kept/")
    gone = await _rewrite_many(store, "/registry/gone/")
    await asyncio.gather(*(store.delete(entry.key, expected=entry.modified) for entry in gone))
    compacted = await store.current_revision()
    later = await store.update(kept[0].key, b"", expected=kept[0].modified)
    await store.compact(compacted)
    assert _rows(tmp_path) == sorted(entry.modified for entry in [*kept, later])
    await store.close()
    connection = connect(tmp_path / "store.db")
    assert read_meta(connection, "swept") == read_meta(connection, "compacted") == compacted
    connection.close()


async def test_history_is_forgotten_when_it_is_one_interval_old(tmp_path: Path) -> None:
    clock = ManualClock()
    store = await SqliteStore.open(tmp_path, clock=clock, compaction_interval=300)
    await clock.until_asleep(2)
    first = await _rewrite(store, "/registry/a")
    clock.advance(300)
    await clock.until_asleep(2)
    second = await _rewrite(store, "/registry/b")
    clock.advance(299)
    await clock.until_asleep(2)
    assert _rows(tmp_path) == [version.modified for version in [*first, *second]]
    clock.advance(1)
    await clock.until_asleep(2)
    assert _rows(tmp_path) == [version.modified for version in [first[-1], *second]]
    with pytest.raises(Compacted):
        await store.list("/registry/", at=first[-2].modified)
    await store.close()


async def test_a_sweep_that_was_cut_short_is_finished_after_a_restart(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    versions = await _rewrite(store, "/registry/a")
    await store.close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (versions[-1].modified,))
    connection.close()
    clock = ManualClock()
    store = await SqliteStore.open(tmp_path, clock=clock)
    await clock.until_asleep(2)
    assert _rows(tmp_path) == [versions[-1].modified]
    assert await store.get("/registry/a") == versions[-1]
    await store.close()


async def test_a_list_that_reads_the_file_is_whole_or_refused_while_compaction_runs(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    await _rewrite_many(store, "/registry/")
    expected = await store.list("/registry/")
    await asyncio.gather(*(store.delete(entry.key, expected=entry.modified) for entry in expected.entries))
    await store.close()
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    compaction = asyncio.ensure_future(store.compact(await store.current_revision()))
    outcomes = []
    while not compaction.done():
        outcomes.append(await _try_list(store, expected))
        await asyncio.sleep(0)
    assert outcomes == sorted(outcomes, reverse=True)  # once refused, always refused
    assert await _try_list(store, expected) is False
    await store.close()


async def _try_list(store: SqliteStore, expected: Page) -> bool:
    try:
        page = await store.list("/registry/", at=expected.revision)
    except Compacted:
        return False
    assert page == expected
    return True


async def test_a_watch_that_fell_too_far_behind_fails_with_compacted(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    start = await store.current_revision()
    watch = store.watch("/registry/", after=start)
    entries = await asyncio.gather(*(store.create(f"/registry/{i}", b"") for i in range(2000)))
    await store.compact(await store.current_revision())
    queued = await next_batch(watch)
    assert [event.entry for event in queued.events] == list(entries[: len(queued.events)])
    for _ in range(2):
        with pytest.raises(Compacted):
            await next_batch(watch)
    await store.close()

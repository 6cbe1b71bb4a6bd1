"""Reading the file while everything else goes on."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from patience import PATIENCE
from store_reading import events_until, next_batch

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Batch, Entry, Watch
from pilothouse.apiserver.storage.sqlite.history import Span, SqliteKeyRange, read_events, read_undo
from pilothouse.apiserver.storage.sqlite.schema import connect
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.apiserver.storage.watching import QUEUE_LIMIT

# More changes than memory keeps.
MANY = 9000


async def _reopen(store: SqliteStore, directory: Path) -> SqliteStore:
    """The same data with no history in memory."""
    await store.close()
    return await SqliteStore.open(directory, compaction_interval=0)


async def test_a_watch_far_behind_reads_the_file_while_others_write(tmp_path: Path) -> None:
    """More changes than memory keeps happen before the watch starts and while it catches up."""
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    start = await store.current_revision()
    await asyncio.gather(*(store.create(f"/registry/a/{i}", b"") for i in range(MANY)))
    writing = asyncio.ensure_future(_create_in_waves(store))
    last = start + 2 * MANY
    events = await events_until(store, "/registry/", after=start, last=last)
    assert [event.revision for event in events] == list(range(start + 1, last + 1))
    await writing
    await store.close()


async def _create_in_waves(store: SqliteStore) -> None:
    for wave in range(9):
        await asyncio.gather(*(store.create(f"/registry/b/{wave}/{i}", b"") for i in range(MANY // 9)))


async def test_a_list_is_right_when_memory_forgets_what_it_needs_while_it_reads(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    expected = [await store.create(f"/registry/{i}", b"0") for i in range(3)]
    at = expected[-1].modified
    newer = await _rewrite(store, expected)
    store = await _reopen(store, tmp_path)
    may_go_on = threading.Event()
    blocking = store._reader.call(lambda _: may_go_on.wait(PATIENCE))
    listing = asyncio.ensure_future(store.list("/registry/", at=at))
    await asyncio.sleep(0)
    await _rewrite(store, newer)
    await asyncio.gather(*(store.create(f"/other/{i}", b"") for i in range(MANY)))
    may_go_on.set()
    assert (await listing).entries == expected
    assert await blocking
    await store.close()


async def _rewrite(store: SqliteStore, entries: list[Entry]) -> list[Entry]:
    return [await store.update(entry.key, entry.value + b"+", expected=entry.modified) for entry in entries]


async def test_a_watch_that_nobody_reads_holds_only_so_many_events(tmp_path: Path) -> None:
    """Neither one that was up to date nor one that began with a backlog."""
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    start = await store.current_revision()
    await asyncio.gather(*(store.create(f"/registry/a/{i}", b"") for i in range(1500)))
    watches = [store.watch("/registry/", after=start), store.watch("/registry/", after=start + 1500)]
    await asyncio.gather(*(store.create(f"/registry/b/{i}", b"") for i in range(1500)))
    held = [len((await next_batch(watch)).events) for watch in watches]
    assert held == [1500, QUEUE_LIMIT]
    await store.close()


async def test_a_watch_closed_while_it_reads_the_file_tells_nothing_more(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    start = await store.current_revision()
    await store.create("/registry/a", b"")
    store = await _reopen(store, tmp_path)
    watch = store.watch("/registry/", after=start)
    reading = asyncio.ensure_future(_collect(watch))
    await asyncio.sleep(0)
    await watch.aclose()
    assert await reading == []
    await store.close()


async def _collect(watch: Watch) -> list[Batch]:
    return [batch async for batch in watch]


async def test_a_snapshot_of_the_file_knows_itself_what_is_compacted(tmp_path: Path) -> None:
    """A reader may look at the file when it is compacted already and nobody has been told yet."""
    store = await SqliteStore.open(tmp_path, compaction_interval=0)
    old = await store.create("/registry/a", b"")
    new = await store.update("/registry/a", b"", expected=old.modified)
    await store.compact(new.modified)
    await store.close()
    connection = connect(tmp_path / "store.db")
    span = Span(SqliteKeyRange.under("/"), after=old.modified, upto=new.modified)
    with pytest.raises(Compacted):
        read_events(connection, span, limit=10)
    with pytest.raises(Compacted):
        read_undo(connection, span)
    connection.close()

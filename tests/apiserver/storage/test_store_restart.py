"""What returned is there after the store was closed and opened again."""

from __future__ import annotations

import asyncio

import pytest
from storage_backends import Backend

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.interface import Page


async def test_a_restart_keeps_entries_revisions_and_history(backend: Backend) -> None:
    store = await backend.open()
    a = await store.create("/registry/a", b"one")
    b = await store.create("/registry/b", b"")
    new = await store.update("/registry/a", b"two", expected=a.modified)
    gone = await store.delete("/registry/b", expected=b.modified)
    await store.close()
    store = await backend.open()
    assert await store.current_revision() == gone.modified
    assert await store.get("/registry/a") == new
    assert await store.get("/registry/b") is None
    assert await store.list("/registry/", at=b.modified) == Page([a, b], b.modified)
    assert (await store.create("/registry/c", b"")).created == gone.modified + 1
    await store.close()


async def test_an_older_page_read_from_disk_joins_with_changes_made_since(backend: Backend) -> None:
    store = await backend.open()
    entries = [await store.create(f"/registry/{i}", b"old") for i in range(6)]
    at = entries[-1].modified
    await store.delete("/registry/1", expected=entries[1].modified)
    await store.close()
    store = await backend.open()
    await store.update("/registry/3", b"new", expected=entries[3].modified)
    again = await store.create("/registry/1", b"again")
    await store.delete("/registry/1", expected=again.modified)
    assert await store.list("/registry/", at=at) == Page(entries, at)
    assert await store.list("/registry/", at=at, after="/registry/0", limit=3) == Page(entries[1:4], at, 2)
    await store.close()


async def test_closing_finishes_the_writes_that_were_begun(backend: Backend) -> None:
    store = await backend.open()
    writes = [asyncio.ensure_future(store.create(f"/registry/{i}", b"")) for i in range(50)]
    await asyncio.sleep(0)
    await store.close()
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert all(not isinstance(outcome, BaseException) or isinstance(outcome, Unavailable) for outcome in outcomes)
    store = await backend.open()
    there = {entry.key for entry in (await store.list("/registry/")).entries}
    assert {outcome.key for outcome in outcomes if not isinstance(outcome, BaseException)} <= there
    await store.close()


async def test_a_closed_store_can_be_closed_again_and_refuses_everything_else(backend: Backend) -> None:
    store = await backend.open()
    entry = await store.create("/registry/a", b"")
    await asyncio.gather(store.close(), store.close())
    await store.close()
    for refused in (
        store.get("/registry/a"),
        store.create("/registry/b", b""),
        store.update("/registry/a", b"", expected=entry.modified),
        store.delete("/registry/a", expected=entry.modified),
        store.list("/registry/"),
        store.list("/registry/", at=entry.modified - 1),
        store.count("/registry/"),
        store.current_revision(),
        store.compact(entry.modified),
        store.ping(),
    ):
        with pytest.raises(Unavailable):
            await refused

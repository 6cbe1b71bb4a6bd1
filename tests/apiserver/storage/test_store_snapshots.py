"""A store goes back to a snapshot by ordinary writes, and only as many as it takes."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Entry, Event, Store, Watch
from pilothouse.apiserver.storage.snapshots import Snapshots


async def state(store: Store) -> dict[str, bytes]:
    return {entry.key: entry.value for entry in (await store.list("/registry/")).entries}


async def test_what_is_new_goes_what_is_gone_comes_back_and_what_changed_is_what_it_was(store: Store) -> None:
    snapshots = Snapshots(store)
    kept = await store.create("/registry/a", b"a")
    changed = await store.create("/registry/b", b"b")
    gone = await store.create("/registry/c", b"c")
    before = await snapshots.save()
    changed = await store.update("/registry/b", b"other", expected=changed.modified)
    await store.delete("/registry/c", expected=gone.modified)
    last = await store.create("/registry/d", b"d")

    revision = await snapshots.restore(before)

    assert await state(store) == {"/registry/a": b"a", "/registry/b": b"b", "/registry/c": b"c"}
    assert revision == last.modified + 3
    assert await store.get("/registry/a") == kept
    with pytest.raises(Compacted):
        await store.list("/registry/", at=revision - 1)


async def test_going_back_to_where_one_is_writes_nothing(store: Store) -> None:
    snapshots = Snapshots(store)
    entry = await store.create("/registry/a", b"1")
    before = await snapshots.save()
    entry = await store.update("/registry/a", b"2", expected=entry.modified)
    entry = await store.update("/registry/a", b"1", expected=entry.modified)
    assert await snapshots.restore(before) == entry.modified


async def test_a_watch_sees_the_way_back_as_ordinary_events(store: Store) -> None:
    snapshots = Snapshots(store)
    before = await snapshots.save()
    watch = store.watch("/registry/", after=await store.current_revision())
    await store.create("/registry/a", b"a")
    await _taken(watch, 1)
    _, later = await asyncio.gather(snapshots.restore(before), _taken(watch, 1))
    await watch.aclose()
    assert [(event.key, event.entry) for event in later] == [("/registry/a", None)]


async def _taken(watch: Watch, number: int) -> list[Event]:
    events: list[Event] = []
    while len(events) < number:
        events += (await anext(aiter(watch))).events
    return events


async def test_a_writer_that_does_not_stop_loses_against_the_snapshot(store: Store) -> None:
    snapshots = Snapshots(store)
    before = await snapshots.save()
    writing = asyncio.gather(*(store.create(f"/registry/{number}", b"") for number in range(50)))
    await asyncio.gather(snapshots.restore(before), writing)
    await snapshots.restore(before)
    assert await state(store) == {}


async def test_a_controller_that_undoes_a_restore_does_not_make_it_fail(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots, update = Snapshots(store), store.update
    status = await store.create("/registry/status", b"unknown")
    other = await store.create("/registry/other", b"before")
    before = await snapshots.save()
    await update(status.key, b"available", expected=status.modified)
    await update(other.key, b"after", expected=other.modified)

    async def update_and_react(key: str, value: bytes, *, expected: int, ttl: int = 0) -> Entry:
        """Update the key, and write the status again at once."""
        entry = await update(key, value, expected=expected, ttl=ttl)
        return await update(key, b"available", expected=entry.modified) if key == status.key else entry

    monkeypatch.setattr(store, "update", update_and_react)
    await snapshots.restore(before)
    assert await state(store) == {status.key: b"available", other.key: b"before"}


async def test_a_heartbeat_that_still_beats_is_not_set_back(store: Store) -> None:
    snapshots, key = Snapshots(store), "/registry/leases/kube-node-lease/node-1"
    lease = await store.create(key, b"10:00")
    before = await snapshots.save()
    renewed = await store.update(key, b"10:10", expected=lease.modified)
    await store.create("/registry/leases/kube-node-lease/node-2", b"10:10")
    await snapshots.restore(before)
    assert await state(store) == {key: b"10:10"}
    assert await store.get(key) == renewed

"""Many writers at once: no update is lost, no answer is wrong."""

from __future__ import annotations

import asyncio
from itertools import chain

import pytest
from store_reading import next_events

from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict, StorageError
from pilothouse.apiserver.storage.interface import Entry, Store


async def _increment(store: Store, key: str, times: int) -> None:
    done = 0
    while done < times:
        entry = await store.get(key)
        assert entry is not None
        try:
            await store.update(key, b"%d" % (int(entry.value) + 1), expected=entry.modified)
            done += 1
        except RevisionConflict:
            continue


async def test_no_increment_of_a_contended_counter_is_lost(store: Store) -> None:
    await store.create("/registry/counter", b"0")
    await asyncio.gather(*(_increment(store, "/registry/counter", 15) for _ in range(8)))
    entry = await store.get("/registry/counter")
    assert entry is not None
    assert entry.value == b"120"


async def _create_and_read(store: Store, key: str, value: bytes) -> Entry | None:
    """What is there after the create, whether it won or was refused."""
    try:
        return await store.create(key, value)
    except KeyExists:
        return await store.get(key)


async def test_of_racing_creates_one_wins_and_the_refused_can_read_the_winner(store: Store) -> None:
    answers = await asyncio.gather(*(_create_and_read(store, "/registry/a", b"%d" % i) for i in range(16)))
    assert set(answers) == {await store.get("/registry/a")}


async def _update_and_read(store: Store, entry: Entry, value: bytes) -> Entry | None:
    try:
        return await store.update(entry.key, value, expected=entry.modified)
    except RevisionConflict:
        return await store.get(entry.key)


async def test_of_racing_updates_one_wins_and_the_refused_can_read_the_winner(store: Store) -> None:
    entry = await store.create("/registry/a", b"")
    answers = await asyncio.gather(*(_update_and_read(store, entry, b"%d" % i) for i in range(16)))
    assert set(answers) == {await store.get("/registry/a")}


async def test_of_racing_deletes_one_wins(store: Store) -> None:
    entry = await store.create("/registry/a", b"")
    deletes = (store.delete("/registry/a", expected=entry.modified) for _ in range(8))
    answers = await asyncio.gather(*deletes, return_exceptions=True)
    assert sum(isinstance(answer, KeyNotFound) for answer in answers) == 7
    assert sum(isinstance(answer, Entry) for answer in answers) == 1
    assert await store.get("/registry/a") is None


@pytest.mark.parametrize("turns", range(4))
async def test_a_key_that_is_being_deleted_is_created_anew_only_once(store: Store, turns: int) -> None:
    entry = await store.create("/registry/a", b"")
    delete = asyncio.ensure_future(store.delete("/registry/a", expected=entry.modified))
    for _ in range(turns):
        await asyncio.sleep(0)
    early = asyncio.ensure_future(store.create("/registry/a", b"early"))
    await delete
    late = asyncio.ensure_future(store.create("/registry/a", b"late"))
    await asyncio.wait([early, late])
    winners = [create.result() for create in (early, late) if not create.exception()]
    assert winners == [await store.get("/registry/a")]


async def _live_and_die(store: Store, key: str, lives: int) -> list[int]:
    """Creates, updates and deletes the key again and again, and answers the revisions in the order they returned."""
    revisions = []
    for _ in range(lives):
        entry = await store.create(key, b"one")
        updated = await store.update(key, b"two", expected=entry.modified)
        deleted = await store.delete(key, expected=updated.modified)
        revisions += [entry.modified, updated.modified, deleted.modified]
    return revisions


async def test_concurrent_writes_have_one_order_that_each_writer_and_every_watch_agree_on(store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision())
    by_writer = await asyncio.gather(*(_live_and_die(store, f"/registry/{i}", 4) for i in range(12)))
    assert all(revisions == sorted(revisions) for revisions in by_writer)
    events = await next_events(watch, 12 * 4 * 3)
    assert [event.revision for event in events] == sorted(chain.from_iterable(by_writer))
    await watch.aclose()


async def test_a_read_sees_every_write_that_returned_before_it(store: Store) -> None:
    async def write_and_read(writer: int) -> None:
        for i in range(10):
            entry = await store.create(f"/registry/{writer}/{i}", b"")
            assert await store.get(entry.key) == entry
            assert await store.current_revision() >= entry.modified
            assert (await store.list(f"/registry/{writer}/")).entries[-1] == entry

    await asyncio.gather(*map(write_and_read, range(8)))


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4])
async def test_a_cancelled_write_happens_wholly_or_not_at_all(store: Store, turns: int) -> None:
    start = await store.current_revision()
    writes = [asyncio.ensure_future(store.create(f"/registry/{i}", b"%d" % i)) for i in range(8)]
    for _ in range(turns):
        await asyncio.sleep(0)
    for write in writes[::2]:
        write.cancel()
    await asyncio.wait(writes)
    marker = await store.create("/registry/marker", b"")
    events = await next_events(store.watch("/registry/", after=start), marker.modified - start)
    assert [event.revision for event in events] == list(range(start + 1, marker.modified + 1))
    assert [event.entry for event in sorted(events, key=lambda event: event.key)] == (
        await store.list("/registry/")
    ).entries
    assert {write.result() for write in writes[1::2]} <= {event.entry for event in events}


async def test_a_key_whose_write_was_cancelled_can_be_written_again(store: Store) -> None:
    for turns in range(5):
        write = asyncio.ensure_future(store.create("/registry/a", b"first"))
        for _ in range(turns):
            await asyncio.sleep(0)
        write.cancel()
        try:
            entry = await store.create("/registry/a", b"second")
        except StorageError:
            found = await store.get("/registry/a")
            assert found is not None
            entry = found
        await store.delete("/registry/a", expected=entry.modified)

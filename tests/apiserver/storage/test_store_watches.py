"""Watches: every change after a revision, once, in order, with what it replaced."""

from __future__ import annotations

import asyncio

import pytest
from patience import PATIENCE
from storage_backends import Backend
from store_reading import events_until, next_batch, next_events

from pilothouse.apiserver.storage.errors import Compacted, Unavailable
from pilothouse.apiserver.storage.interface import Event, Store, Watch


async def _live_one_life(store: Store, key: str) -> list[Event]:
    """Creates, updates and deletes the key, and answers the events that this must cause."""
    created = await store.create(key, b"one")
    updated = await store.update(key, b"two", expected=created.modified)
    deleted = await store.delete(key, expected=updated.modified)
    return [
        Event(created.modified, key, created, None),
        Event(updated.modified, key, updated, created),
        Event(deleted.modified, key, None, updated),
    ]


async def test_a_watch_tells_creates_updates_and_deletes_with_what_they_replaced(store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision())
    expected = await _live_one_life(store, "/registry/a")
    assert await next_events(watch, 3) == expected
    await watch.aclose()


async def test_a_watch_from_the_past_first_tells_what_it_missed(store: Store) -> None:
    start = await store.current_revision()
    past = await _live_one_life(store, "/registry/a")
    watch = store.watch("/registry/", after=start)
    assert await next_events(watch, 3) == past
    assert await _live_one_life(store, "/registry/a") == await next_events(watch, 3)
    await watch.aclose()


async def test_a_watch_resumes_behind_any_revision_without_gap_or_repetition(store: Store) -> None:
    start = await store.current_revision()
    events = await _live_one_life(store, "/registry/a") + await _live_one_life(store, "/registry/b")
    for after in range(start, events[-1].revision):
        assert await events_until(store, "/registry/", after=after, last=events[-1].revision) == [
            event for event in events if event.revision > after
        ]


async def test_a_watch_resumes_after_a_restart(backend: Backend) -> None:
    store = await backend.open()
    start = await store.current_revision()
    past = await _live_one_life(store, "/registry/a")
    await store.close()
    store = await backend.open()
    watch = store.watch("/registry/", after=start)
    present = await _live_one_life(store, "/registry/a")
    assert await next_events(watch, 6) == past + present
    await store.close()


async def test_a_watch_tells_only_of_its_prefix(store: Store) -> None:
    start = await store.current_revision()
    watch = store.watch("/registry/pods/", after=start)
    for key in ("/registry/pod", "/registry/pods", "/registry/pods0", "/registry/podsecurity/a", "/a", "/registry/q/"):
        await store.create(key, b"")
    expected = await _live_one_life(store, "/registry/pods/a")
    assert await next_events(watch, 3) == expected
    assert await events_until(store, "/registry/pods/", after=start, last=expected[-1].revision) == expected
    await watch.aclose()


async def test_watches_with_nested_prefixes_are_each_told_once(store: Store) -> None:
    start = await store.current_revision()
    watches = [store.watch(prefix, after=start) for prefix in ("/", "/registry/", "/registry/a", "/registry/a")]
    longer = store.watch("/registry/a/longer", after=start)
    expected = await _live_one_life(store, "/registry/a") + await _live_one_life(store, "/registry/a")
    for watch in watches:
        assert await next_events(watch, 6) == expected
        await watch.aclose()
    await longer.aclose()


async def test_a_watch_from_a_revision_to_come_tells_only_what_is_later(store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision() + 3)
    await _live_one_life(store, "/registry/a")
    assert await _live_one_life(store, "/registry/b") == await next_events(watch, 3)
    await watch.aclose()


async def test_a_watch_from_a_compacted_revision_fails_with_compacted(store: Store) -> None:
    start = await store.current_revision()
    events = await _live_one_life(store, "/registry/a")
    await store.compact(events[-1].revision)
    watch = store.watch("/registry/", after=start)
    with pytest.raises(Compacted):
        await next_batch(watch)
    await watch.aclose()


async def test_a_watch_from_the_compacted_revision_itself_works(store: Store) -> None:
    events = await _live_one_life(store, "/registry/a")
    await store.compact(events[-1].revision)
    watch = store.watch("/registry/", after=events[-1].revision)
    assert await _live_one_life(store, "/registry/a") == await next_events(watch, 3)
    await watch.aclose()


async def test_a_watch_that_keeps_up_is_not_hurt_by_compaction(store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision())
    for _ in range(3):
        expected = await _live_one_life(store, "/registry/a")
        assert await next_events(watch, 3) == expected
        await store.compact(expected[-1].revision)
    await watch.aclose()


async def test_a_watcher_that_sleeps_through_many_changes_still_gets_all_of_them(store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision())
    entries = await asyncio.gather(*(store.create(f"/registry/{i}", b"") for i in range(3000)))
    events = await next_events(watch, 3000)
    assert [event.entry for event in events] == sorted(entries, key=lambda entry: entry.modified)
    assert await _live_one_life(store, "/registry/last") == await next_events(watch, 3)
    await watch.aclose()


async def test_progress_reaches_the_revision_that_was_current_when_it_was_asked_for(
    backend: Backend, store: Store
) -> None:
    if not backend.answers_progress:
        pytest.skip("this store may leave a request for progress unanswered")
    watch = store.watch("/registry/pods/", after=await store.current_revision())
    elsewhere = await store.create("/registry/services/a", b"")
    await watch.request_progress()
    batch = await next_batch(watch)
    assert batch.events == ()
    assert batch.revision >= elsewhere.modified
    await watch.aclose()


async def test_progress_never_overtakes_an_event(store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision())
    for i in range(20):
        write = asyncio.ensure_future(store.create(f"/registry/{i}", b""))
        await watch.request_progress()
        events = await next_events(watch, 1)
        assert [event.entry for event in events] == [await write]
    await watch.aclose()


async def test_a_cancelled_read_of_a_watch_loses_nothing(store: Store) -> None:
    start = await store.current_revision()
    watch = store.watch("/registry/", after=start)
    for turns in range(6):
        reading = asyncio.ensure_future(anext(watch))
        for _ in range(turns):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        if not reading.cancelled():
            pytest.fail("nothing was there to be read")
    assert await _live_one_life(store, "/registry/a") == await next_events(watch, 3)
    await watch.aclose()


async def test_a_closed_watch_ends(store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision())
    await store.create("/registry/a", b"")
    await watch.aclose()
    await watch.aclose()
    assert [batch async for batch in watch] == []


async def test_closing_a_watch_ends_the_read_that_waits_on_it(store: Store) -> None:
    watch = store.watch("/registry/", after=await store.current_revision())
    reading = asyncio.ensure_future(_read_all(watch))
    await asyncio.sleep(0)
    await watch.aclose()
    async with asyncio.timeout(PATIENCE):
        assert await reading == 0


async def _read_all(watch: Watch) -> int:
    return len([batch async for batch in watch])


async def test_closing_the_store_ends_its_watches(backend: Backend) -> None:
    store = await backend.open()
    watch = store.watch("/registry/", after=await store.current_revision())
    reading = asyncio.ensure_future(next_batch(watch))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(Unavailable):
        await reading
    with pytest.raises(Unavailable):
        await next_batch(store.watch("/registry/", after=1))

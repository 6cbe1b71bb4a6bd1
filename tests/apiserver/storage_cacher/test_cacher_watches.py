from __future__ import annotations

import asyncio

import orjson
import pytest
from cacher_harness import PREFIX, ManualClock, key, labelled, put, ready_events, remove, running, settle, text_of
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.events import WatchEvent
from pilothouse.apiserver.storage.cacher.selection import SelectionPredicate
from pilothouse.apiserver.storage.cacher.window import WindowLimits
from pilothouse.apiserver.storage.errors import TooLargeRevision, TooOld
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.selectors import fields, labels


async def test_a_watch_of_the_state_begins_with_it_in_key_order(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "b")
    await put(store, "a")
    for after in (None, 0):
        watcher = await cacher.watch(PREFIX, after=after)
        assert await ready_events(watcher) == [("ADDED", "a", 2), ("ADDED", "b", 1)]
    await put(store, "b")
    await remove(store, "a")
    assert await ready_events(watcher) == [("MODIFIED", "b", 3), ("DELETED", "a", 4)]


async def test_a_watch_of_the_newest_state_waits_for_a_lagging_cache(store: MemoryStore, cacher: Cacher) -> None:
    store.hold()
    await put(store, "a")
    starting = asyncio.create_task(cacher.watch(PREFIX))
    await settle()
    assert not starting.done()
    assert await ready_events(await cacher.watch(PREFIX, after=0)) == []
    store.release()
    assert await ready_events(await starting) == [("ADDED", "a", 1)]


async def test_a_watch_after_a_revision_replays_every_change_and_goes_on(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    await put(store, "b")
    await put(store, "a")
    await remove(store, "b")
    await settle()
    watcher = await cacher.watch(PREFIX, after=1)
    await put(store, "c")
    assert await ready_events(watcher) == [
        ("ADDED", "b", 2),
        ("MODIFIED", "a", 3),
        ("DELETED", "b", 4),
        ("ADDED", "c", 5),
    ]


async def test_a_watch_after_a_revision_yet_to_come_skips_everything_up_to_it(
    store: MemoryStore, cacher: Cacher
) -> None:
    watcher = await cacher.watch(PREFIX, after=2)
    for name in "abc":
        await put(store, name)
    assert await ready_events(watcher) == [("ADDED", "c", 3)]


async def test_a_watch_from_now_sends_no_state(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    await settle()
    store.hold()
    await put(store, "b")
    newest = await cacher.watch(PREFIX, send_initial_events=False)
    any_revision = await cacher.watch(PREFIX, after=0, send_initial_events=False)
    store.release()
    await put(store, "c")
    assert await ready_events(newest) == [("ADDED", "c", 3)]
    assert await ready_events(any_revision) == [("ADDED", "b", 2), ("ADDED", "c", 3)]


async def test_initial_events_end_with_an_annotated_bookmark(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "b")
    await put(store, "a")
    await settle()
    watcher = await cacher.watch(PREFIX, after=1, send_initial_events=True, bookmarks=True)
    await put(store, "c")
    await settle()
    events = watcher.drain()
    assert [event.type for event in events] == ["ADDED", "ADDED", "BOOKMARK", "ADDED"]
    assert orjson.loads(events[2].object.wire) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": "2"},
    }


async def test_initial_events_without_bookmarks_have_no_end_mark(store: MemoryStore, cacher: Cacher) -> None:
    await put(store, "a")
    watcher = await cacher.watch(PREFIX, send_initial_events=True)
    assert await ready_events(watcher) == [("ADDED", "a", 1)]


async def test_initial_events_of_a_revision_that_does_not_come_are_refused(cacher: Cacher, clock: ManualClock) -> None:
    starting = asyncio.create_task(cacher.watch(PREFIX, after=9, send_initial_events=True))
    await clock.advance(3.1)
    with pytest.raises(TooLargeRevision):
        await starting


async def test_initial_events_come_from_the_store_when_it_keeps_silent_about_progress(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    await put(store, "a")
    await settle()
    store.answers_progress = False
    store.hold()
    await put(store, "b")
    starting = asyncio.create_task(cacher.watch(PREFIX, send_initial_events=True, bookmarks=True))
    await clock.advance(0.31)
    watcher = await starting
    store.release()
    await put(store, "c")
    events = [(kind, name) for kind, name, _ in await ready_events(watcher)]
    assert events == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", ""), ("ADDED", "c")]


async def test_changes_made_while_the_store_answers_are_not_missed(
    store: MemoryStore, cacher: Cacher, clock: ManualClock
) -> None:
    async def overtake() -> None:
        store.before_answer = None
        store.release()
        await put(store, "b")
        await settle()

    store.answers_progress = False
    store.hold()
    await put(store, "a")
    store.before_answer = overtake
    starting = asyncio.create_task(cacher.watch(PREFIX, send_initial_events=True, bookmarks=True))
    await clock.advance(0.31)
    watcher = await starting
    assert cacher.revision == 2
    assert await ready_events(watcher) == [("ADDED", "a", 1), ("BOOKMARK", "", 1), ("ADDED", "b", 2)]


async def test_a_selector_turns_changes_into_coming_and_going(store: MemoryStore, cacher: Cacher) -> None:
    watcher = await cacher.watch(PREFIX, after=0, predicate=labelled("in", "yes"))
    await put(store, "a", **{"in": "no"})
    await put(store, "a", **{"in": "yes"}, text="came")
    await put(store, "a", **{"in": "yes"}, text="stayed")
    await put(store, "a", **{"in": "no"}, text="went")
    await put(store, "a", **{"in": "yes"}, text="returned")
    await remove(store, "a")
    await settle()
    events = watcher.drain()
    assert [(event.type, text_of(event.object), event.object.revision) for event in events] == [
        ("ADDED", "came", 2),
        ("MODIFIED", "stayed", 3),
        ("DELETED", "stayed", 4),
        ("ADDED", "returned", 5),
        ("DELETED", "returned", 6),
    ]
    replayed = await cacher.watch(PREFIX, after=2, predicate=labelled("in", "yes"))
    assert [(event.type, event.revision) for event in replayed.drain()] == [
        (event.type, event.revision) for event in events[1:]
    ]


async def test_an_event_is_one_object_for_all_who_see_it_alike(store: MemoryStore, cacher: Cacher) -> None:
    watchers = [await cacher.watch(PREFIX, predicate=predicate) for predicate in (None, labelled("x", "1"))]
    await put(store, "a", x="1")
    await settle()
    (one,), (other,) = (watcher.drain() for watcher in watchers)
    assert one is other

    made: list[WatchEvent] = []

    def encode(event: WatchEvent) -> bytes:
        made.append(event)
        return event.object.wire

    assert one.encoded("json", encode) is other.encoded("json", encode)
    assert made == [one]


async def test_a_watch_sees_only_its_namespace_or_its_object(store: MemoryStore, cacher: Cacher) -> None:
    in_namespace = await cacher.watch(f"{PREFIX}x/")
    of_object = await cacher.watch(key("a", "x"))
    for name, namespace in [("a", "x"), ("ab", "x"), ("a", "xy"), ("a", "y")]:
        await put(store, name, namespace)
    assert await ready_events(in_namespace) == [("ADDED", "a", 1), ("ADDED", "ab", 2)]
    assert await ready_events(of_object) == [("ADDED", "a", 1)]
    assert await ready_events(await cacher.watch(key("a", "x"))) == [("ADDED", "a", 1)]
    replayed = await cacher.watch(f"{PREFIX}x/", after=1)
    assert await ready_events(replayed) == [("ADDED", "ab", 2)]


async def test_a_watch_outside_the_prefix_is_refused(cacher: Cacher) -> None:
    with pytest.raises(ValueError, match="is not under"):
        await cacher.watch("/registry/secrets/")


async def test_watchers_of_a_trigger_value_are_asked_only_about_it(store: MemoryStore, clock: ManualClock) -> None:
    asked: list[tuple[str, str]] = []

    class OnNode(SelectionPredicate):
        def __call__(self, stored: StoredObject) -> bool:
            asked.append((str(self.fields), stored.fields["data.node"]))
            return super().__call__(stored)

    async with running(store, clock=clock) as cacher:
        first = await cacher.watch(PREFIX, predicate=OnNode(fields=fields.parse("data.node=n1")))
        second = await cacher.watch(f"{PREFIX}ns/", predicate=OnNode(fields=fields.parse("data.node=n2")))
        await put(store, "a", node="n1")
        await put(store, "a", node="n2")
        await put(store, "b", "other", node="n2")
        await put(store, "c", node="n3")
        assert await ready_events(first) == [("ADDED", "a", 1), ("DELETED", "a", 2)]
        assert await ready_events(second) == [("ADDED", "a", 2)]
        assert "n3" not in {node for _, node in asked}


async def test_watchers_of_a_label_see_objects_come_and_leave(store: MemoryStore, cacher: Cacher) -> None:
    watcher = await cacher.watch(PREFIX, predicate=SelectionPredicate(labels.parse("app=web,!old")))
    other = await cacher.watch(f"{PREFIX}ns/", predicate=SelectionPredicate(labels.parse("app in (web)")))
    await put(store, "a", app="web")
    await put(store, "a", app="web", old="yes")
    await put(store, "a", app="db")
    await put(store, "b")
    await put(store, "b", "elsewhere", app="web")
    assert await ready_events(watcher) == [("ADDED", "a", 1), ("DELETED", "a", 2), ("ADDED", "b", 5)]
    assert await ready_events(other) == [("ADDED", "a", 1), ("MODIFIED", "a", 2), ("DELETED", "a", 3)]
    for each in (watcher, other):
        each.close()
    assert cacher.watchers == 0


async def test_a_resume_from_before_the_window_is_refused(store: MemoryStore, clock: ManualClock) -> None:
    await put(store, "a")
    await put(store, "b")
    async with running(store, clock=clock, window=WindowLimits(least=2, most=2)) as cacher:
        with pytest.raises(TooOld, match=r"too old resource version: 1 \(2\)"):
            await cacher.watch(PREFIX, after=1)
        for name in "cde":
            await put(store, name)
        await settle()
        with pytest.raises(TooOld, match=r"too old resource version: 2 \(3\)"):
            await cacher.watch(PREFIX, after=2)
        assert await ready_events(await cacher.watch(PREFIX, after=3)) == [("ADDED", "d", 4), ("ADDED", "e", 5)]


async def test_keys_that_expire_at_one_revision_are_all_reported(store: MemoryStore, clock: ManualClock) -> None:
    async with running(store, clock=clock, window=WindowLimits(least=1, most=1)) as cacher:
        watcher = await cacher.watch(PREFIX)
        await put(store, "a")
        await put(store, "b")
        store.expire(key("a"), key("b"))
        events = await ready_events(watcher)
        assert events[2:] == [("DELETED", "a", 3), ("DELETED", "b", 3)]
        with pytest.raises(TooOld):
            await cacher.watch(PREFIX, after=2)

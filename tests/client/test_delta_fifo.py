"""DeltaFIFO: what is kept together, what is compressed, what a replace finds missing."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.client.cache.delta_fifo import Delta, DeltaFIFO, DeltaType
from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.cache.keys import DeletedFinalStateUnknown
from pilothouse.machinery.objects import Json

ADDED, UPDATED, DELETED = DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED
REPLACED, SYNC = DeltaType.REPLACED, DeltaType.SYNC


def obj(name: str, version: int = 1) -> Json:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def drain(fifo: DeltaFIFO) -> list[tuple[str, list[Delta], bool]]:
    popped: list[tuple[str, list[Delta], bool]] = []
    while len(fifo):
        fifo.pop(lambda key, deltas, initial: popped.append((key, deltas, initial)))
    return popped


def fifo_over(*known: Json) -> DeltaFIFO:
    indexer = Indexer()
    indexer.replace(known)
    return DeltaFIFO(indexer)


def test_all_changes_of_an_object_come_together_and_objects_in_the_order_of_their_first_change() -> None:
    fifo = fifo_over()
    fifo.add(obj("a"))
    fifo.add(obj("b"))
    fifo.update(obj("a", 2))
    fifo.delete(obj("a", 3))
    (first, deltas, _), (second, _, _) = drain(fifo)
    assert (first, second) == ("a", "b")
    assert deltas == [Delta(ADDED, obj("a")), Delta(UPDATED, obj("a", 2)), Delta(DELETED, obj("a", 3))]


def test_equal_updates_are_not_compressed() -> None:
    fifo = fifo_over()
    fifo.update(obj("a"))
    fifo.update(obj("a"))
    assert len(drain(fifo)[0][1]) == 2


def test_two_deletions_are_one_and_the_one_that_knows_the_final_state_stays() -> None:
    fifo = fifo_over(obj("a"))
    fifo.replace([])
    fifo.delete(obj("a", 5))
    assert drain(fifo) == [("a", [Delta(DELETED, obj("a", 5))], True)]
    fifo = fifo_over(obj("a"))
    fifo.delete(obj("a", 5))
    fifo.replace([])
    assert drain(fifo)[0][1] == [Delta(DELETED, obj("a", 5))]


def test_a_deletion_of_something_nobody_knows_is_not_reported() -> None:
    fifo = fifo_over()
    fifo.delete(obj("a"))
    assert drain(fifo) == []


def test_a_deletion_then_a_creation_are_both_reported() -> None:
    fifo = fifo_over(obj("a"))
    fifo.delete(obj("a", 2))
    fifo.add(obj("a", 3))
    assert [delta.type for delta in drain(fifo)[0][1]] == [DELETED, ADDED]


def test_a_replace_reports_what_it_lists_and_tombstones_for_what_it_misses() -> None:
    fifo = fifo_over(obj("known"), obj("kept"))
    fifo.add(obj("queued", 4))
    fifo.replace([obj("kept", 7), obj("new", 8)])
    popped = {key: deltas for key, deltas, _ in drain(fifo)}
    assert popped["kept"] == [Delta(REPLACED, obj("kept", 7))]
    assert popped["new"] == [Delta(REPLACED, obj("new", 8))]
    assert popped["known"] == [Delta(DELETED, DeletedFinalStateUnknown("known", obj("known")))]
    tombstone = DeletedFinalStateUnknown("queued", obj("queued", 4))
    assert popped["queued"] == [Delta(ADDED, obj("queued", 4)), Delta(DELETED, tombstone)]


def test_a_tombstone_of_a_tombstone_keeps_the_object() -> None:
    fifo = fifo_over(obj("a"))
    fifo.replace([])
    fifo.replace([])
    assert drain(fifo)[0][1] == [Delta(DELETED, DeletedFinalStateUnknown("a", obj("a")))]


def test_a_resync_shows_what_is_known_but_never_overtakes_a_queued_change() -> None:
    fifo = fifo_over(obj("a"), obj("b"))
    fifo.update(obj("a", 2))
    fifo.resync()
    popped = {key: deltas for key, deltas, _ in drain(fifo)}
    assert popped == {"a": [Delta(UPDATED, obj("a", 2))], "b": [Delta(SYNC, obj("b"))]}


def test_it_has_synced_when_the_first_list_has_been_popped() -> None:
    fifo = fifo_over(obj("gone"))
    fifo.replace([obj("a"), obj("b")])
    seen = []
    for _ in range(3):
        assert not fifo.synced.is_set()
        fifo.pop(lambda key, deltas, initial: seen.append(initial))
    assert fifo.synced.is_set()
    fifo.add(obj("c"))
    fifo.pop(lambda key, deltas, initial: seen.append(initial))
    assert seen == [True, True, True, False]


def test_an_empty_first_list_is_synced_at_once() -> None:
    fifo = fifo_over()
    fifo.replace([])
    assert fifo.synced.is_set()


def test_every_object_is_transformed_once_and_tombstones_and_resyncs_are_not() -> None:
    indexer = Indexer()
    calls = []

    def transform(found: Json) -> Json:
        calls.append(found["metadata"]["name"])
        return {**found, "seen": True}

    fifo = DeltaFIFO(indexer, transform=transform)
    fifo.add(obj("a"))
    fifo.replace([obj("b")])
    fifo.pop(lambda *_: None)
    indexer.add({**obj("b"), "seen": True})
    fifo.pop(lambda *_: None)
    fifo.resync()
    assert calls == ["a", "b"]


async def test_waiting_ends_when_there_is_something_to_pop() -> None:
    fifo = fifo_over()
    waiting = asyncio.ensure_future(fifo.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    fifo.add(obj("a"))
    await waiting
    drain(fifo)
    with pytest.raises(IndexError):
        fifo.pop(lambda *_: None)


NAMES = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("relist"), st.none()),
    st.tuples(st.just("pop"), st.none()),
    st.tuples(st.just("resync"), st.none()),
)


@given(st.lists(STEPS, max_size=40), st.data())
@settings(max_examples=150, deadline=None)
def test_a_consumer_that_applies_every_delta_ends_with_the_servers_state(
    steps: list[tuple[str, str | None]], data: st.DataObject
) -> None:
    """Changes may be missed, but never after the last list; what is applied is never older than what was."""
    server: dict[str, int] = {}
    consumer = Indexer()
    fifo = DeltaFIFO(consumer)

    def apply(key: str, deltas: list[Delta], initial: bool) -> None:
        for delta in deltas:
            if delta.type is DELETED:
                assert key in consumer, "a deletion is reported once"
                consumer.delete(key)
            else:
                assert isinstance(delta.object, dict)
                old = consumer.get_by_key(key)
                new = int(delta.object["metadata"]["resourceVersion"])
                assert old is None or int(old["metadata"]["resourceVersion"]) <= new
                consumer.update(key, delta.object)

    for version, (action, name) in enumerate(steps, start=1):
        missed = action in ("put", "remove") and data.draw(st.booleans(), label="missed")
        if action == "put" and name is not None:
            change = fifo.update if name in server else fifo.add
            server[name] = version
            if not missed:
                change(obj(name, version))
        elif action == "remove" and name in server:
            del server[name]
            if not missed:
                fifo.delete(obj(name, version))
        elif action == "relist":
            fifo.replace([obj(key, at) for key, at in server.items()])
        elif action == "resync":
            fifo.resync()
        elif action == "pop" and len(fifo):
            fifo.pop(apply)
    fifo.replace([obj(key, at) for key, at in server.items()])
    while len(fifo):
        fifo.pop(apply)
    assert {key: consumer.get_by_key(key) for key in consumer.list_keys()} == {k: obj(k, v) for k, v in server.items()}

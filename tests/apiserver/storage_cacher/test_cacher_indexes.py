from __future__ import annotations

import asyncio

import pytest
from cacher_harness import PREFIX, key, put, running, value
from cacher_memory_store import MemoryStore

from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.selection import SelectionPredicate
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.selectors import fields, labels

MANY = 600


def asked(by_labels: str = "", by_fields: str = "") -> tuple[SelectionPredicate, list[str]]:
    """Return a predicate, and the keys of the objects that it is asked about."""
    keys: list[str] = []

    class Asked(SelectionPredicate):
        def __call__(self, stored: StoredObject) -> bool:
            keys.append(stored.key)
            return super().__call__(stored)

    return Asked(labels.parse(by_labels), fields.parse(by_fields)), keys


async def filled(store: MemoryStore) -> None:
    for number in range(MANY):
        name = f"n{number:03}"
        await store.create(key(name), value(name, node=f"node-{number // 3}", app=f"app-{number % 200}"))


async def names(cacher: Cacher, predicate: SelectionPredicate) -> list[str]:
    page = await cacher.list(PREFIX, matches=predicate)
    return [obj.key.rpartition("/")[2] for obj in page.objects]


@pytest.mark.parametrize(
    ("selector", "found", "looked_at"),
    [
        ("app=app-7", ["n007", "n207", "n407"], 0),
        ("app in (app-7,app-8),!old", ["n007", "n008", "n207", "n208", "n407", "n408"], 6),
        ("app=nothing,app", [], 0),
        ("other", [], 0),
        ("app!=app-7,other!=x,!app", [], MANY),
    ],
)
async def test_a_selector_looks_only_at_what_an_index_leaves(
    store: MemoryStore, selector: str, found: list[str], looked_at: int
) -> None:
    await filled(store)
    async with running(store) as cacher:
        predicate, keys = asked(selector)
        assert await names(cacher, predicate) == found
        assert len(keys) == looked_at


async def test_a_field_is_indexed_from_its_first_list_on(store: MemoryStore) -> None:
    await filled(store)
    async with running(store, indexed_fields=["data.node"]) as cacher:
        predicate, keys = asked(by_fields="data.node=node-7")
        assert await names(cacher, predicate) == ["n021", "n022", "n023"]
        await put(store, "n022", node="node-8")
        await put(store, "n000", node="node-7")
        assert await names(cacher, predicate) == ["n000", "n021", "n023"]
        assert keys == []


async def test_a_field_that_is_not_indexed_is_looked_at_in_every_object(store: MemoryStore) -> None:
    await filled(store)
    async with running(store) as cacher:
        predicate, keys = asked(by_fields="data.node=node-7")
        assert await names(cacher, predicate) == ["n021", "n022", "n023"]
        assert len(keys) == MANY


async def test_lists_that_come_while_an_index_is_filled_wait_for_it_together(store: MemoryStore) -> None:
    await filled(store)
    async with running(store, indexed_fields=["data.node"]) as cacher:
        asking = [asked(by_fields=f"data.node=node-{number}") for number in range(5)]
        found = await asyncio.gather(*(names(cacher, predicate) for predicate, _ in asking))
        assert [len(each) for each in found] == [3] * 5
        assert [keys for _, keys in asking] == [[]] * 5


async def test_a_cache_that_is_stopped_while_an_index_is_filled_ends_the_filling(store: MemoryStore) -> None:
    await filled(store)
    async with running(store):
        pass
    await asyncio.sleep(0)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

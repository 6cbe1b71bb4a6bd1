"""Random writes, deletes, selectors and pages: what the indexes narrow is what a look at every object finds."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from cacher_harness import CODEC, CONFIG_MAPS, PREFIX, ManualClock, key, settle
from cacher_memory_store import MemoryStore
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from pilothouse.apiserver.storage.cacher import indexes, object_index, state
from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.direct_reader import DirectReader
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.selection import CachedPage, ListSelection, SelectionPredicate
from pilothouse.apiserver.storage.cacher.window import WindowLimits
from pilothouse.machinery.selectors import fields, labels

T = TypeVar("T")

WHERE = st.tuples(st.sampled_from("abcdef"), st.sampled_from(["x", "xy", "y"]))
VALUES = st.sampled_from(["", "1", "2", "3"])
OBJECTS = st.fixed_dictionaries({"node": VALUES, "labels": st.dictionaries(st.sampled_from("klmn"), VALUES)})
TERMS = st.one_of(
    st.builds("{}={}".format, st.sampled_from("klmo"), VALUES),
    st.builds("{} in ({},{})".format, st.sampled_from("klm"), VALUES, VALUES),
    st.builds("{}!={}".format, st.sampled_from("kl"), VALUES),
    st.sampled_from(["k", "l", "o", "!k", "m notin (1,2)", "k>1"]),
)
FIELD_TERMS = st.builds(
    "{}{}{}".format, st.sampled_from(["data.node", "metadata.name"]), st.sampled_from(["=", "!="]), VALUES
)
SELECTORS = st.builds(
    lambda terms, field_terms: SelectionPredicate(labels.parse(",".join(terms)), fields.parse(",".join(field_terms))),
    st.lists(TERMS, max_size=3),
    st.lists(FIELD_TERMS, max_size=2),
)
SCOPES = st.sampled_from([PREFIX, PREFIX, f"{PREFIX}x/", key("a", "x")])
SELECTIONS = st.builds(
    ListSelection, SCOPES, st.sampled_from(["", "", key("b", "x")]), st.integers(0, 4), st.none() | SELECTORS
)


def shown(page: CachedPage) -> tuple[list[tuple[str, bytes]], int, int]:
    return [(obj.key, obj.wire) for obj in page.objects], page.remaining, page.revision


class IndexMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.patch = pytest.MonkeyPatch()
        for module, name, few in [
            (indexes, "FEW", 2),
            (state, "FEW", 2),
            (indexes, "_MOST_MERGED", 6),
            (object_index, "_TURN", 2),
            (object_index, "_MOST_LABELS", 3),
            (object_index, "_MOST_VALUES", 2),
            (object_index, "_LONG", 3),
        ]:
            self.patch.setattr(module, name, few)
        self.store = MemoryStore()
        options: dict[str, Any] = {"resource": CONFIG_MAPS, "clock": ManualClock(), "window": WindowLimits(20, 20)}
        self.cacher = Cacher(self.store, PREFIX, CODEC, indexed_fields=["data.node"], **options)
        self.run(self.cacher.start())
        self.run(self.cacher.wait_ready())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @rule(changes=st.lists(st.tuples(WHERE, st.none() | OBJECTS), min_size=1, max_size=12))
    def change(self, changes: list[tuple[tuple[str, str], dict[str, Any] | None]]) -> None:
        """None deletes, where there is something."""
        for (name, namespace), obj in changes:
            self.run(self.write(name, namespace, obj))
        self.run(settle())

    async def write(self, name: str, namespace: str, obj: dict[str, Any] | None) -> None:
        where, old = key(name, namespace), await self.store.get(key(name, namespace))
        if obj is None:
            if old is not None:
                self.store.expire(where)
            return
        metadata = {"name": name, "uid": f"uid-{name}", "labels": obj["labels"], "annotations": {"labels": "{}"}}
        value = CODEC.encode({"metadata": metadata, "data": {"node": obj["node"]}})
        if old is None:
            await self.store.create(where, value)
        else:
            await self.store.update(where, value, expected=old.modified)

    @rule()
    def fill_again(self) -> None:
        """A list begins while the indexes are not yet filled, and changes come meanwhile."""

        async def fill() -> None:
            self.cacher._state.indexes.restart(self.cacher._state._objects)

        self.run(fill())

    @rule(selection=SELECTIONS)
    def list_now(self, selection: ListSelection) -> None:
        self.check(self.run(self.list(selection)), selection)

    @rule(selection=SELECTIONS, back=st.integers(0, 15))
    def list_then(self, selection: ListSelection, back: int) -> None:
        self.check(self.run(self.list(selection, at=max(0, self.store.revision - back))), selection)

    @rule(selection=SELECTIONS, where=WHERE, obj=st.none() | OBJECTS)
    def list_while_something_changes(
        self, selection: ListSelection, where: tuple[str, str], obj: dict[str, Any] | None
    ) -> None:
        async def both() -> CachedPage:
            listing = asyncio.ensure_future(self.list(selection))
            await asyncio.sleep(0)
            await self.write(*where, obj)
            return await listing

        self.check(self.run(both()), selection)

    async def list(self, selection: ListSelection, at: int | None = None) -> CachedPage:
        prefix, after, limit, matches = selection.prefix, selection.after, selection.limit, selection.matches
        return await self.cacher.list(prefix, after=after, limit=limit, matches=matches, at=at)

    def check(self, found: CachedPage, selection: ListSelection) -> None:
        """The store itself has no indexes."""
        expected = self.run(
            DirectReader(self.store, CODEC, CacheMetrics(CONFIG_MAPS)).list(selection, at=found.revision)
        )
        assert shown(found) == shown(expected)

    def teardown(self) -> None:
        self.run(self.cacher.stop())
        self.loop.close()
        self.patch.undo()


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)

"""Whatever is done to a store, it answers as the model does: now, at every revision, and to every watch."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from storage_backends import Backend
from store_model import Model
from store_reading import all_pages, events_until, next_events

from pilothouse.apiserver.storage.errors import Compacted, StorageError
from pilothouse.apiserver.storage.interface import Entry, Store

KEYS = ["/a", "/a/", "/a/1", "/a/2", "/a0", "/b/\uffff", "/b/\U00010000"]
PREFIXES = ["/", "/a", "/a/", "/b/"]


@dataclass(frozen=True)
class Create:
    key: str
    value: bytes


@dataclass(frozen=True)
class Update:
    key: str
    value: bytes
    stale: bool


@dataclass(frozen=True)
class Delete:
    key: str
    stale: bool


@dataclass(frozen=True)
class Compact:
    back: int


@dataclass(frozen=True)
class Restart:
    pass


Step: TypeAlias = Create | Update | Delete | Compact | Restart

_keys = st.sampled_from(KEYS)
_values = st.binary(max_size=4)
_rarely = st.sampled_from([False, False, False, True])
_steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Create, _keys, _values),
    st.builds(Update, _keys, _values, _rarely),
    st.builds(Delete, _keys, _rarely),
    st.builds(Create, _keys, _values),
    st.builds(Update, _keys, _values, _rarely),
    st.builds(Compact, st.integers(0, 6)),
    st.builds(Restart),
)


@dataclass
class Pair:
    """A store and its model, taken through the same steps."""

    backend: Backend
    store: Store
    model: Model

    async def take(self, step: Step) -> None:
        match step:
            case Create(key, value):
                await self._agree(self.store.create(key, value), self.model.create(key, value))
            case Update(key, value, stale):
                expected = self._revision_of(key, stale)
                await self._agree(
                    self.store.update(key, value, expected=expected), self.model.update(key, value, expected)
                )
            case Delete(key, stale):
                expected = self._revision_of(key, stale)
                await self._agree(self.store.delete(key, expected=expected), self.model.delete(key, expected))
            case Compact(back):
                await self._compact(back)
            case Restart():
                await self.store.close()
                self.store = await self.backend.open()

    async def _agree(self, answer: Awaitable[Entry], expected: Entry | type[StorageError]) -> None:
        if isinstance(expected, Entry):
            assert await answer == expected
        else:
            with pytest.raises(expected):
                await answer

    async def _compact(self, back: int) -> None:
        revision = max(self.model.revision - back, min(self.model.states))
        await self.store.compact(revision)
        self.model.compacted = max(self.model.compacted, revision)

    def _revision_of(self, key: str, stale: bool) -> int:
        entry = self.model.current.get(key)
        return entry.modified - stale if entry else self.model.revision

    async def check_everything(self) -> None:
        assert await self.store.current_revision() == self.model.revision
        for prefix in PREFIXES:
            assert await self.store.count(prefix) == len(self.model.listed(prefix, self.model.revision))
            for revision in self.model.states:
                await self._check_list(prefix, revision)
                await self._check_watch(prefix, revision)

    async def _check_list(self, prefix: str, revision: int) -> None:
        if revision < self.model.compacted:
            with pytest.raises(Compacted):
                await self.store.list(prefix, at=revision)
            return
        for limit in (0, 1, 2):
            assert await all_pages(self.store, prefix, at=revision, limit=limit) == self.model.listed(prefix, revision)

    async def _check_watch(self, prefix: str, revision: int) -> None:
        expected = self.model.events_after(prefix, revision)
        if revision < self.model.compacted or not expected:
            return
        assert await events_until(self.store, prefix, after=revision, last=expected[-1].revision) == expected


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(_steps, min_size=5, max_size=30))
async def test_a_store_answers_like_its_model(backend: Backend, tmp_path: Path, steps: list[Step]) -> None:
    place = type(backend).create(tmp_path)
    store = await place.open()
    pair = Pair(place, store, Model(await store.current_revision()))
    watch = store.watch("/", after=pair.model.revision)
    for step in steps:
        if isinstance(step, Restart):
            await watch.aclose()
            await pair.take(step)
            watch = pair.store.watch("/", after=pair.model.revision)
            continue
        told = len(pair.model.events)
        await pair.take(step)
        assert await next_events(watch, len(pair.model.events) - told) == pair.model.events[told:]
    await pair.check_everything()
    await pair.store.close()

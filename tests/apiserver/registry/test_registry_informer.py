"""The view of a registry that is kept by a watch: it follows, and after a break it catches up with what it missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from patience import PATIENCE

from pilothouse.apiserver.registry import informer as module
from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.machinery.objects import Json, name_of


class LevelStrategy(Strategy):
    namespaced = False


LEVELS = Resource(Names("levels", "Level"), LevelStrategy())


@dataclass
class Followed:
    """An informer that runs, and what it has told, in order: the name, and whether the object was there by then."""

    registry: RegistryStore
    store: SqliteStore
    informer: RegistryInformer
    told: asyncio.Queue[tuple[str, bool]] = field(default_factory=asyncio.Queue)

    def hear(self, objects: list[Json]) -> None:
        for obj in objects:
            self.told.put_nowait((name_of(obj), self.informer.get(name_of(obj)) is not None))

    async def create(self, name: str) -> None:
        await OwnAccess(self.registry).create({"metadata": {"name": name}})


@asynccontextmanager
async def followed(folder: Path) -> AsyncIterator[Followed]:
    store = await SqliteStore.open(folder)
    registry = RegistryStore(LEVELS, store)
    await registry.start()
    informer = RegistryInformer(registry)
    it = Followed(registry, store, informer)
    informer.listen(it.hear)
    running = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(PATIENCE):
            yield it
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await registry.stop()
        await store.close()


async def test_what_is_there_and_what_comes_is_told_once_it_can_be_found(tmp_path: Path) -> None:
    async with followed(tmp_path) as it:
        await it.create("a")
        await it.informer.wait_synced()
        await it.create("b")
        assert {await it.told.get(), await it.told.get()} == {("a", True), ("b", True)}
        assert sorted(map(name_of, it.informer.all())) == ["a", "b"]


async def test_what_happened_while_nothing_could_be_watched_is_told_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY", 0.0)
    async with followed(tmp_path) as it:
        await it.create("a")
        assert await it.told.get() == ("a", True)
        await it.registry.stop()
        entry = await it.store.get("/registry/levels/a")
        assert entry is not None
        await it.store.delete(entry.key, expected=entry.modified)
        await it.store.create(entry.key.replace("a", "b"), entry.value.replace(b'"a"', b'"b"'))
        await it.registry.start()
        assert [await it.told.get(), await it.told.get()] == [("a", False), ("b", True)]
        assert it.informer.get("a") is None

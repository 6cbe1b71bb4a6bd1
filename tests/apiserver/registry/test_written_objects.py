"""What a write returns: the object of the watch cache, or one of its own where the cache has another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.apiserver.offload import Weight
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.machinery.objects import Json


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[RegistryStore]:
    store = await SqliteStore.open(tmp_path)
    made = RegistryStore(Resource(Names("configmaps", "ConfigMap"), Strategy()), store)
    await made.start()
    await made.wait_ready()
    yield made
    await made.stop()
    await store.close()


async def test_a_write_returns_the_object_that_the_watch_cache_has(registry: RegistryStore) -> None:
    created = await _create(registry, "a")
    assert registry.cacher.held(created.key) is created
    updated = await registry.objects.update(
        created, {**_config_map("a"), "data": {"v": "2"}}, ttl=0, dry_run=False, weight=Weight()
    )
    assert registry.cacher.held(created.key) is updated


async def test_a_write_returns_what_it_wrote_where_the_watch_cache_has_something_older(registry: RegistryStore) -> None:
    old = await _create(registry, "a")
    await registry.cacher.stop()
    new = await registry.objects.update(
        old, {**_config_map("a"), "data": {"v": "2"}}, ttl=0, dry_run=False, weight=Weight()
    )
    assert isinstance(new, StoredObject)
    assert new.parse()["data"] == {"v": "2"}
    assert registry.cacher.held(old.key) is old


async def _create(registry: RegistryStore, name: str) -> StoredObject:
    key = f"/registry/configmaps/n/{name}"
    created = await registry.objects.create(key, _config_map(name), ttl=0, dry_run=False, weight=Weight())
    assert isinstance(created, StoredObject)
    return created


def _config_map(name: str) -> Json:
    return {"metadata": {"name": name, "namespace": "n", "uid": "u"}, "data": {"v": "1"}}

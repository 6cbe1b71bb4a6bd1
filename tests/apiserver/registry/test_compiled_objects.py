"""What is made from every object of a resource is made again only for objects that changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.apiserver.registry.compiled import CompiledObjects
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.storage.errors import CacheNotReady
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.machinery.objects import Json, name_of


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[RegistryStore]:
    store = await SqliteStore.open(tmp_path)
    made = RegistryStore(Resource(Names("configmaps", "ConfigMap"), Strategy()), store)
    await made.start()
    await made.wait_ready()
    yield made
    await made.stop()
    await store.close()


async def test_objects_are_compiled_once_and_again_when_they_change(registry: RegistryStore) -> None:
    compiled: list[str] = []

    def compile(obj: Json) -> str:
        compiled.append(name_of(obj))
        return f"{name_of(obj)}={(obj.get('data') or {}).get('v')}"

    access, objects = OwnAccess(registry), CompiledObjects(registry, compile)
    assert list(await objects.all()) == []
    for name in ("b", "a"):
        await access.create({"metadata": {"name": name, "namespace": "n"}, "data": {"v": "1"}})
    await _seen(registry)
    first = await objects.all()
    assert list(first) == ["a=1", "b=1"]
    assert await objects.all() is first
    assert sorted(compiled) == ["a", "b"]

    await access.update({"metadata": {"name": "b", "namespace": "n"}}, lambda obj: obj["data"].update(v="2"))
    await _seen(registry)
    assert list(await objects.all()) == ["a=1", "b=2"]
    assert compiled[2:] == ["b"]

    await access.delete("a", namespace="n")
    await _seen(registry)
    assert list(await objects.all()) == ["b=2"]
    assert compiled[3:] == []


async def test_nobody_knows_the_objects_of_a_cache_that_has_stopped(registry: RegistryStore) -> None:
    objects = CompiledObjects(registry, name_of)
    await objects.all()
    await registry.stop()
    with pytest.raises(CacheNotReady):
        await objects.all()


async def _seen(registry: RegistryStore) -> None:
    """Returns when the cache has all that was written."""
    await registry.list_newest()

"""Whoever follows a registry ends with what is stored, whatever happens while they are told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from pilothouse.aggregator.api_services_to_register import Priority, make_api_service
from pilothouse.aggregator.apiservice.storage import APIServiceStore
from pilothouse.apiserver.registry import follower as module
from pilothouse.apiserver.registry.follower import RegistryFollower
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of


async def test_a_change_does_not_overtake_the_list_that_is_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_one, go_on = asyncio.Event(), asyncio.Event()

    async def pause(seconds: float) -> None:
        told_one.set()
        await go_on.wait()

    monkeypatch.setattr(module, "_AT_ONCE", 1)
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(Lock=asyncio.Lock, sleep=pause))
    store = await SqliteStore.open(tmp_path)
    registry = APIServiceStore(store, root="/registry")
    await registry.start()
    priorities: dict[str, int] = {}

    def put(obj: Json) -> None:
        priorities[name_of(obj)] = obj["spec"]["groupPriorityMinimum"]

    def raise_priority(obj: Json) -> None:
        obj["spec"]["groupPriorityMinimum"] = 9

    access = OwnAccess(registry)
    services = [make_api_service(GroupVersion(f"g{number:02}", "v1"), Priority(1, 1)) for number in range(2)]
    for service in services:
        await access.create(service)
    follower = RegistryFollower(registry, put, lambda namespace, name: None)
    filling = asyncio.ensure_future(follower.fill())
    await told_one.wait()
    await access.update(services[-1], raise_priority)
    catching_up = asyncio.ensure_future(follower.catch_up())
    for _ in range(100):
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(filling, catching_up)
    assert priorities[name_of(services[-1])] == 9
    await registry.stop()
    await store.close()

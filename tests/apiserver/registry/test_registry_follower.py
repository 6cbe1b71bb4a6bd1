"""Whoever follows a registry ends with what is stored, whatever happens while they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from patience import PATIENCE

from pilothouse.apiserver.registry import informer as module
from pilothouse.apiserver.registry.informer import RegistryFollower
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.machinery.objects import Json, name_of


class LevelStrategy(Strategy):
    namespaced = False


LEVELS = Resource(Names("levels", "Level"), LevelStrategy())


class Following:
    """A follower of levels, and what it was told of them: their priorities by name."""

    def __init__(self, registry: RegistryStore) -> None:
        self.registry = registry
        self.access = OwnAccess(registry)
        self.told: dict[str, int] = {}
        self.settled = 0
        self.follower = RegistryFollower(registry, self.put, self.drop, self._settle)
        self._changed = asyncio.Condition()

    def put(self, obj: Json) -> None:
        self.told[name_of(obj)] = obj["spec"]["priority"]

    def drop(self, namespace: str, name: str) -> None:
        assert namespace == ""
        del self.told[name]

    def _settle(self) -> None:
        self.settled += 1

    async def create(self, name: str) -> Json:
        level: Json = {"metadata": {"name": name}, "spec": {"priority": 1}}
        await self.access.create(level)
        return level

    async def until_told(self, **priorities: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.told != priorities:  # noqa: ASYNC110  # nobody but the follower is told
                await asyncio.sleep(0)


def raise_priority(obj: Json) -> None:
    obj["spec"]["priority"] = 9


@pytest.fixture
async def following(tmp_path: Path) -> AsyncIterator[Following]:
    store = await SqliteStore.open(tmp_path)
    registry = RegistryStore(LEVELS, store)
    await registry.start()
    yield Following(registry)
    await registry.stop()
    await store.close()


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


@asynccontextmanager
async def followed(following: Following) -> AsyncIterator[None]:
    await following.follower.fill()
    task = asyncio.create_task(following.follower.follow())
    try:
        yield
    finally:
        await cancelled(task)


async def test_who_follows_is_told_what_there_is_and_then_every_change(following: Following) -> None:
    old = await following.create("old")
    async with followed(following):
        assert following.told == {"old": 1}
        assert following.settled == 1
        await following.create("new")
        await following.until_told(old=1, new=1)
        await following.access.update(old, raise_priority)
        await following.until_told(old=9, new=1)
        await following.access.delete("new")
        await following.until_told(old=9)
        assert following.settled == 4


async def test_what_changed_while_nothing_was_told_is_told_with_the_next_list(following: Following) -> None:
    for name in ("gone", "kept"):
        await following.create(name)
    await following.follower.fill()
    assert following.follower._watcher is not None
    following.follower._watcher.close()
    await following.access.delete("gone")
    await following.create("new")
    task = asyncio.create_task(following.follower.follow())
    await following.until_told(kept=1, new=1)
    await following.create("later")
    await following.until_told(kept=1, new=1, later=1)
    await cancelled(task)


async def test_who_fails_to_understand_a_change_is_told_everything_again(following: Following) -> None:
    put, failures = following.put, [ValueError("not today")]

    def put_if_able(obj: Json) -> None:
        if failures:
            raise failures.pop()
        put(obj)

    async with followed(following):
        following.follower._put = put_if_able
        await following.create("a")
        await following.until_told(a=1)
        await following.create("b")
        await following.until_told(a=1, b=1)


async def test_who_has_caught_up_was_told_of_every_write_before(following: Following) -> None:
    await following.follower.fill()
    for number in range(5):
        await following.create(f"g{number}")
        await following.follower.catch_up()
        assert len(following.told) == number + 1


async def test_a_change_does_not_overtake_the_list_that_is_being_told(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_one, go_on = asyncio.Event(), asyncio.Event()

    async def pause_after_each(items: Iterable[StoredObject], *, every: int) -> AsyncIterator[StoredObject]:
        for item in items:
            yield item
            told_one.set()
            await go_on.wait()

    monkeypatch.setattr(module, "yield_periodically", pause_after_each)
    services = [await following.create(f"g{number}") for number in range(2)]
    filling = asyncio.ensure_future(following.follower.fill())
    await told_one.wait()
    await following.access.update(services[-1], raise_priority)
    catching_up = asyncio.ensure_future(following.follower.catch_up())
    for _ in range(100):
        await asyncio.sleep(0)
    assert following.told == {"g0": 1}, "the change waits until the list is told"
    go_on.set()
    await asyncio.gather(filling, catching_up)
    assert following.told == {"g0": 1, "g1": 9}

"""2,000 objects churn on a live server while connections are cut, requests refused, versions expire and the server is
killed. In the end every informer's cache is the server's state, and no handler was told of anything impossible."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from faulty_proxy import BEFORE, WITHIN, FaultyProxy
from live_server import LiveServer
from patience import PATIENCE

from pilothouse.client.cache.handlers import Deleted
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.cache.list_watch import SelectedListWatch
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import cancelled
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.client.wait import Backoff, poll
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import Json, resource_version_of, uid_of
from pilothouse.machinery.status_error import StatusError

pytestmark = pytest.mark.slow

OBJECTS = 2_000
WRITERS = 32
QUICK = Backoff(duration=0.02, factor=2.0, jitter=1.0, steps=5, cap=0.3)
MARKER = "the-last-one"


class HistoryChecker:
    """A handler that compares what it is told with what can happen: objects come, change forward in time, and go."""

    def __init__(self) -> None:
        self.state: dict[str, tuple[str, int]] = {}
        self.gone: dict[str, int] = {}
        self.dead: set[str] = set()
        self.problems: list[str] = []
        self.told = 0
        self.marked = asyncio.Event()

    def on_add(self, obj: Json, is_in_initial_list: bool) -> None:
        key, uid, version = self._seen(obj)
        if key in self.state:
            self.problems.append(f"{key} was added twice")
        if uid in self.dead or version <= self.gone.get(key, 0):
            self.problems.append(f"{key} came back from the dead")
        self.state[key] = (uid, version)

    def on_update(self, old: Json, new: Json) -> None:
        key, uid, version = self._seen(new)
        if self.state.get(key) != (uid_of(old), int(resource_version_of(old))):
            self.problems.append(f"{key} changed from a state that was never told")
        if version < int(resource_version_of(old)) or uid in self.dead:
            self.problems.append(f"{key} went back in time")
        if uid != uid_of(old):
            self.dead.add(uid_of(old))
        self.state[key] = (uid, version)

    def on_delete(self, obj: Deleted) -> None:
        self.told += 1
        key = deletion_handling_key(obj)
        if key not in self.state:
            self.problems.append(f"{key} was deleted and not there")
            return
        uid, version = self.state.pop(key)
        self.dead.add(uid)
        self.gone[key] = max(version, int(resource_version_of(obj)) if isinstance(obj, dict) else 0)

    def _seen(self, obj: Json) -> tuple[str, str, int]:
        self.told += 1
        key = meta_namespace_key(obj)
        if key.endswith(MARKER):
            self.marked.set()
        return key, uid_of(obj), int(resource_version_of(obj))


class Churn:
    """Writers that create, change, delete and create again; what they can not reach they try until they can."""

    def __init__(self, maps: ResourceClient) -> None:
        self._maps = maps
        self._work = iter(range(OBJECTS))
        self.done = 0
        self.half_way = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as writers:
            for seed in range(WRITERS):
                writers.create_task(self._write(random.Random(seed)))

    async def _write(self, dice: random.Random) -> None:
        for number in self._work:
            name = f"object-{number}"
            await self._until_done(partial(self._create, name, number))
            if dice.random() < 0.4:
                patch = {"data": {"value": str(dice.random())}}
                await self._until_done(partial(self._maps.patch, name, patch))
            if dice.random() < 0.4:
                await self._until_done(partial(self._delete, name))
                if dice.random() < 0.3:
                    await self._until_done(partial(self._create, name, number))
            self.done += 1
            if self.done > OBJECTS // 2:
                self.half_way.set()

    async def _create(self, name: str, number: int) -> None:
        labels = {"parity": "even" if number % 2 == 0 else "odd"}
        with suppress(AlreadyExists):  # by an attempt whose answer was lost
            await self._maps.create({"metadata": {"name": name, "labels": labels}, "data": {"value": "first"}})

    async def _delete(self, name: str) -> None:
        with suppress(NotFound):
            await self._maps.delete(name)

    async def _until_done(self, write: Callable[[], Awaitable[object]]) -> None:
        async def attempt() -> bool:
            try:
                await write()
            except NotFound:
                return True
            except (ConnectionFailed, StatusError):
                return False
            return True

        await poll(attempt, 0.1, timeout=PATIENCE)


@asynccontextmanager
async def watched(client: Client, **options: Any) -> AsyncIterator[tuple[SharedIndexInformer, HistoryChecker]]:
    selector = str(options.pop("selector", ""))
    source = SelectedListWatch(client.resource("v1", "configmaps", namespace="default"), label_selector=selector)
    informer = SharedIndexInformer(source, name=f"fire {selector}", backoff=QUICK, **options)
    informer.set_watch_error_handler(lambda name, error: None)
    checker = HistoryChecker()
    informer.add_event_handler(checker)
    task = asyncio.ensure_future(informer.run())
    try:
        yield informer, checker
    finally:
        await cancelled(task)


async def everything(maps: ResourceClient, selector: str = "") -> dict[str, Json]:
    listing = await maps.list(ListOptions(label_selector=selector))
    return {meta_namespace_key(obj): obj for obj in listing["items"]}


async def test_informers_survive_cuts_refusals_expiry_and_a_killed_server(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        live = await stack.enter_async_context(LiveServer(tmp_path / "data").run())
        direct_url = f"http://127.0.0.1:{live.insecure_port}"
        direct = await stack.enter_async_context(connect(ClientConfig(host=direct_url, qps=0, timeout=20)))
        proxy = await stack.enter_async_context(FaultyProxy(direct_url).run())
        client = await stack.enter_async_context(connect(ClientConfig(host=proxy.url, qps=0)))
        streaming = await stack.enter_async_context(watched(client))
        paged = await stack.enter_async_context(watched(client, use_watch_list=False))
        selected = await stack.enter_async_context(watched(client, selector="parity=even"))

        maps = direct.resource("v1", "configmaps", namespace="default")
        churn = Churn(maps)
        churning = asyncio.ensure_future(churn.run())
        await churn.half_way.wait()
        late = HistoryChecker()
        streaming[0].add_event_handler(late)
        await live.kill()
        await live.start()
        await churning

        proxy.active = False
        await maps.create({"metadata": {"name": MARKER, "labels": {"parity": "even"}}})
        checkers = [checker for _, checker in (streaming, paged, selected)] + [late]
        async with asyncio.timeout(PATIENCE):
            for checker in checkers:
                await checker.marked.wait()

        fresh, even = await everything(maps), await everything(maps, "parity=even")
        for informer, expected in ((streaming[0], fresh), (paged[0], fresh), (selected[0], even)):
            assert {meta_namespace_key(obj): obj for obj in informer.indexer.list()} == expected
        for checker, expected in zip(checkers, (fresh, fresh, even, fresh), strict=True):
            assert checker.problems == []
            assert checker.state == {key: (uid_of(o), int(resource_version_of(o))) for key, o in expected.items()}
            assert checker.gone
    faults = {*filter(None, BEFORE), *WITHIN, "bookmarks repeated", "server away"}
    assert faults - proxy.seen.keys() == set()

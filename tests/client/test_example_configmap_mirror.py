"""The example controller against a live server: it mirrors, and neither its death nor the server's loses anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from example_process import example
from live_server import LiveServer
from patience import PATIENCE

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.clock import cancelled
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.wait import Backoff
from pilothouse.machinery.objects import Json

EXAMPLE = "configmap_mirror.py"
TO = "example.com/mirror-to"


class View:
    """All ConfigMaps' data by key, as they are now; `until` waits for them to look right."""

    def __init__(self, client: Client) -> None:
        quick = Backoff(duration=0.05, jitter=1.0)
        self.informer = SharedIndexInformer(client.resource("v1", "configmaps"), backoff=quick)
        self._changed = asyncio.Event()
        self.informer.add_event_handler(
            ResourceEventHandlerFuncs(
                add=lambda obj: self._changed.set(),
                update=lambda old, new: self._changed.set(),
                delete=lambda obj: self._changed.set(),
            )
        )

    def data(self, key: str) -> Json | None:
        obj = self.informer.indexer.get_by_key(key)
        return None if obj is None else obj.get("data")

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveServer]:
    async with LiveServer(tmp_path / "data").run() as running:
        yield running


@asynccontextmanager
async def viewing(client: Client) -> AsyncIterator[View]:
    view = View(client)
    task = asyncio.ensure_future(view.informer.run())
    try:
        await view.informer.wait_synced()
        yield view
    finally:
        await cancelled(task)


def config_map(name: str, to: str, **data: str) -> Json:
    return {"metadata": {"name": name, "annotations": {TO: to}}, "data": data}


async def test_the_mirror_survives_its_own_death_and_the_servers(live: LiveServer) -> None:
    async with connect(live.config) as client, viewing(client) as view:
        for name in ("team-a", "team-b"):
            await client.resource("v1", "namespaces").create({"metadata": {"name": name}})
        sources = client.resource("v1", "configmaps", namespace="default")

        async with example(EXAMPLE, live) as first:
            await sources.create(config_map("settings", "team-a,team-b", color="red"))
            await view.until(lambda: view.data("team-a/settings") == view.data("team-b/settings") == {"color": "red"})
            await client.resource("v1", "configmaps", namespace="team-a").patch("settings", {"data": {"color": "mine"}})
            await view.until(lambda: view.data("team-a/settings") == {"color": "red"})
            first.kill()
            await first.wait()

        await sources.patch("settings", {"data": {"color": "blue"}, "metadata": {"annotations": {TO: "team-b"}}})
        await sources.create(config_map("more", "team-a", size="1"))

        async with example(EXAMPLE, live):
            await view.until(lambda: view.data("team-b/settings") == {"color": "blue"})
            await view.until(lambda: view.data("team-a/settings") is None)
            await view.until(lambda: view.data("team-a/more") == {"size": "1"})
            await live.kill()
            await live.start()
            await sources.delete("more")
            await sources.patch("settings", {"data": {"color": "green"}})
            await view.until(lambda: view.data("team-a/more") is None)
            await view.until(lambda: view.data("team-b/settings") == {"color": "green"})


async def test_the_mirror_ends_when_it_is_asked_to(live: LiveServer) -> None:
    async with connect(live.config) as client, viewing(client) as view, example(EXAMPLE, live) as running:
        await client.resource("v1", "namespaces").create({"metadata": {"name": "team-a"}})
        sources = client.resource("v1", "configmaps", namespace="default")
        await sources.create(config_map("settings", "team-a", color="red"))
        await view.until(lambda: view.data("team-a/settings") == {"color": "red"})
        running.terminate()
        async with asyncio.timeout(PATIENCE):
            assert await running.wait() == 0

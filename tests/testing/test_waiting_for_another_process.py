"""`eventually` on a server in another process: woken by watches of what the condition reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from patience import PATIENCE

from pilothouse.client import Json
from pilothouse.testing import eventually as waiting
from pilothouse.testing import server
from pilothouse.testing.eventually import watch_target


async def test_a_server_in_another_process_wakes_the_wait_by_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_FIRST_TICK", PATIENCE)
    monkeypatch.setattr(waiting, "_LAST_TICK", PATIENCE)
    async with server(process=True) as api:
        maps = api.client().resource("v1", "configmaps", namespace="default")
        tried = asyncio.Event()

        async def first() -> str:
            tried.set()
            return str((await maps.get("a"))["data"]["b"])

        async def second() -> bool:
            tried.set()
            found = (await api.request("GET", "/api/v1/configmaps?labelSelector=c%3Dd")).json["items"]
            return len(found) == 1

        cases: list[tuple[Callable[[], Awaitable[Any]], Json]] = [
            (first, {"data": {"b": "1"}}),
            (second, {"metadata": {"labels": {"c": "d"}}}),
        ]
        for condition, patch in cases:
            tried.clear()
            waiting_for = asyncio.ensure_future(api.eventually(condition, within=PATIENCE))
            await tried.wait()
            if condition is first:
                await maps.create({"metadata": {"name": "a"}})
            await maps.patch("a", patch)
            assert await waiting_for


@pytest.mark.parametrize(
    ("read", "watched"),
    [
        ("/api/v1/namespaces/a/pods/b/status", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db&watch=true"),
        ("/apis/apps/v1/deployments?labelSelector=a&limit=1", "/apis/apps/v1/deployments?labelSelector=a&watch=true"),
        ("/api/v1/namespaces/a", "/api/v1/namespaces?fieldSelector=metadata.name%3Da&watch=true"),
        ("/apis/apps/v1", ""),
        ("/readyz", ""),
        ("/", ""),
    ],
)
def test_the_watch_of_a_read_has_its_objects(read: str, watched: str) -> None:
    assert watch_target(read) == watched

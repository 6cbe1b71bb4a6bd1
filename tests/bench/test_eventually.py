"""Waiting for conditions: woken by changes, with a report on failure."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from patience import PATIENCE

from pilothouse.errors import NotFound
from pilothouse.testing import API, Server, server
from pilothouse.testing import eventually as waiting
from pilothouse.testing.eventually import watch_target


@pytest.mark.asyncio(loop_scope="module")
async def test_a_condition_is_evaluated_after_a_change(api: API) -> None:
    config_maps = api.client().resource("v1", "configmaps", namespace="default")
    evaluations = 0

    async def data() -> Any:
        nonlocal evaluations
        evaluations += 1
        if evaluations == 2:
            await config_maps.create({"metadata": {"name": "later"}, "data": {"a": "b"}})
        return (await config_maps.get("later"))["data"]

    assert await api.eventually(data, within=PATIENCE) == {"a": "b"}
    assert await api.eventually(lambda: evaluations) == evaluations


@pytest.mark.asyncio(loop_scope="module")
async def test_other_exceptions_are_raised_at_once(api: API) -> None:
    with pytest.raises(ZeroDivisionError):
        await api.eventually(lambda: 1 / 0, within=PATIENCE)


def test_the_failure_says_what_happened_during_the_wait() -> None:
    with Server(testing=True, recent_requests=100) as api, api.client() as client:
        config_maps = client.resource("v1", "configmaps", namespace="default")
        config_maps.create({"metadata": {"name": "before"}})
        api.settle()

        def is_there() -> Any:
            for _ in range(4):
                config_maps.patch("before", {"data": {"tried": "yes"}})
                api.request("GET", "/api/v1/namespaces/default/configmaps/later")
            return config_maps.get("later")

        with pytest.raises(AssertionError, match=r"is_there did not hold within 0\.3 s") as failure:
            api.eventually(is_there, within=0.3)
        assert isinstance(failure.value.__cause__, NotFound)
        notes = "\n".join(failure.value.__notes__)
        assert "changed ConfigMap default/before" in notes
        assert "+  tried: 'yes'" in notes
        assert "GET /api/v1/namespaces/default/configmaps/later" in notes
        assert re.search("more times? the last 2 lines", notes)
        with pytest.raises(AssertionError, match="the last value is None; return a true value"):
            api.eventually(lambda: None, within=0.0)


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

        for condition, patch in ((first, {"data": {"b": "1"}}), (second, {"metadata": {"labels": {"c": "d"}}})):
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

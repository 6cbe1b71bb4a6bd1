"""Settling covers the operator under test: in the process of the test, and any other program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilothouse.client import Controller, GroupVersionResource, SharedInformerFactory, enqueue_keys
from pilothouse.errors import AlreadyExists
from pilothouse.testing import API, server

pytestmark = pytest.mark.asyncio

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
PATH = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def copying(api: API, thinking: float) -> AsyncIterator[asyncio.Event]:
    """Run a controller that copies every ConfigMap into a Secret, after some time without a request.

    The event is set when the first reconcile begins.
    """
    client, began = api.client(), asyncio.Event()

    async def reconcile(key: str) -> None:
        namespace, name = key.split("/")
        began.set()
        await asyncio.sleep(thinking)
        try:
            await client.resource("v1", "secrets", namespace=namespace).create({"metadata": {"name": name}})
        except AlreadyExists:
            return

    async with SharedInformerFactory(client) as informers, asyncio.TaskGroup() as tasks:
        informer = informers.for_resource(CONFIG_MAPS)
        controller = Controller("copies", reconcile, caches=(informer,), workers=4)
        informer.add_event_handler(enqueue_keys(controller.queue))
        informers.start()
        running = tasks.create_task(controller.run())
        yield began
        running.cancel()


async def secrets(api: API) -> set[str]:
    listed = (await api.request("GET", "/api/v1/namespaces/default/secrets")).json
    return {item["metadata"]["name"] for item in listed["items"]}


@pytest.mark.parametrize("process", [False, True])
async def test_controllers_in_this_process_have_finished(process: bool) -> None:
    async with server(testing=True, process=process) as api, copying(api, thinking=0.3):
        for turn in ("a", "b"):
            await api.request("POST", PATH, {"metadata": {"name": turn}})
            await api.settle()
            assert turn in await secrets(api)
        before = await api.snapshot()
        await api.restore(before)  # ends the watches
        await api.request("POST", PATH, {"metadata": {"name": "c"}})
        await api.settle()
        assert "c" in await secrets(api)


async def test_a_busy_controller_is_named() -> None:
    async with server(testing=True) as api, copying(api, thinking=3600) as began:
        await api.request("POST", PATH, {"metadata": {"name": "a"}})
        await began.wait()
        with pytest.raises(TimeoutError, match="copies"):
            await api.settle(timeout=0.5)


async def test_any_other_program_is_awaited_by_its_user_agent() -> None:
    async with server(testing=True) as api:
        with pytest.raises(TimeoutError, match=r"other/1.0 [(]has no open watch"):
            await api.settle(timeout=0.3, user_agents=["other/1.0"])
        async with other_program(api):
            await api.settle(user_agents=["other/1.0"])
            for turn in ("a", "b"):
                await api.request("POST", PATH, {"metadata": {"name": turn}})
                await api.settle()
                assert turn in await secrets(api)
            await api.clock.stop()
            quiet = {"programs": {"userAgents": ["other/1.0"], "quietFor": "30s", "clock": "Server"}}
            assert (await settled(api, {**quiet, "timeout": "300ms"}))["settled"] is False
            await api.clock.step("31s")
            assert (await settled(api, quiet))["settled"] is True
        with pytest.raises(TimeoutError, match="has no open watch"):
            await api.settle(timeout=0.3, user_agents=["other/1.0"])


async def settled(api: API, spec: dict[str, Any]) -> dict[str, Any]:
    kind = {"apiVersion": "testing.pilothouse.dev/v1alpha1", "kind": "Settled", "metadata": {"name": "now"}}
    settleds = "/apis/testing.pilothouse.dev/v1alpha1/settleds"
    await api.request("POST", settleds, {**kind, "spec": spec})
    while "status" not in (now := (await api.request("GET", f"{settleds}/now")).json):
        pass
    await api.request("DELETE", f"{settleds}/now")
    status: dict[str, Any] = now["status"]
    return status


@asynccontextmanager
async def other_program(api: API) -> AsyncIterator[None]:
    """Run a program with requests of its own, which works for some time after every event."""
    agent = {"user_agent": "other/1.0"}
    watch = await api.open("GET", f"{PATH}?watch=true", **agent)

    async def run() -> None:
        async for chunk in watch.chunks():
            await asyncio.sleep(0.25)
            for name in ("a", "b"):
                if f'"name":"{name}"'.encode() in chunk:
                    await api.request(
                        "POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": name}}, **agent
                    )

    running = asyncio.create_task(run())
    yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await watch.close()

"""Watches of the pods of one node, as every kubelet has one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from patience import PATIENCE
from sample_pods import pod
from whole_server import whole_server

from pilothouse.testing import API

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as started:
        yield started


async def watch(server: API, selector: str) -> AsyncIterator[bytes]:
    response = await server.open("GET", f"/api/v1/pods?watch=true&fieldSelector={selector}")
    return response.chunks()


async def first_events(frames: AsyncIterator[bytes], count: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            events = map(orjson.loads, (await anext(frames)).splitlines())
            found += [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    return found


async def test_watch_with_field_selector_sees_pods_enter_and_leave(server: API) -> None:
    on_n, nowhere = await watch(server, "spec.nodeName=n"), await watch(server, "spec.nodeName=")
    assert (await server.request("POST", PODS, pod(meta={"name": "a"}, nodeName="other"))).status == 201
    assert (await server.request("POST", PODS, pod(meta={"name": "b"}))).status == 201
    binding = {"metadata": {"name": "b"}, "target": {"name": "n"}}
    assert (await server.request("POST", f"{PODS}/b/binding", binding)).status == 201
    assert (await server.request("POST", PODS, pod(meta={"name": "c"}, nodeName="n"))).status == 201
    assert await first_events(on_n, 2) == [("ADDED", "b"), ("ADDED", "c")]
    assert await first_events(nowhere, 2) == [("ADDED", "b"), ("DELETED", "b")]

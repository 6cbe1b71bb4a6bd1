"""Two hundred APIServices, half of them dead: what clients ask for first is answered at once, from memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
from api_services import AGGREGATED, RemoteServer, api_service, group
from custom_resources import eventually
from patience import PATIENCE
from whole_server import whole_server

from pilothouse.aggregator.discovery.manager import DiscoveryManager
from pilothouse.apiserver.discovery.manager import GroupManager
from pilothouse.apiserver.endpoints.serializers.registry import JSON
from pilothouse.apiserver.http import Request, Response
from pilothouse.machinery.objects import Json
from pilothouse.testing import API

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MANY = 200


async def _hangs(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def test_the_lists_of_groups_show_servers_that_never_answer(tmp_path: Path) -> None:
    async with whole_server(tmp_path) as server:
        for number in range(MANY):
            await _create(server, number)
        for number in range(MANY):
            await eventually(server, 200, "GET", f"/apis/g{number}.io")
        for accept in ("application/json", AGGREGATED):
            assert await _shows_all(server, accept)


async def _shows_all(server: API, accept: str) -> bool:
    answer = await server.request("GET", "/apis", accept=accept)
    return all(b'"g%d.io"' % number in answer.body for number in range(MANY))


async def _create(server: API, number: int) -> None:
    obj: Json = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", **api_service(f"g{number}.io")}
    obj["spec"]["insecureSkipTLSVerify"] = True
    answer = await server.request("POST", API_SERVICES, obj)
    assert answer.status == 201, answer.body


async def test_those_that_answer_are_current_while_the_others_hang() -> None:
    manager = DiscoveryManager(GroupManager(), {}, timeout=0.1)
    running = asyncio.create_task(manager.run())
    for number in range(MANY):
        server = RemoteServer()
        server.serve_groups(group(f"g{number}.io", v1=["things"]))
        manager.add_api_service(_hangs if number % 2 else server, api_service(f"g{number}.io"))
    assert len(_freshness(manager)) == MANY
    await asyncio.wait_for(manager.wait_tried(), PATIENCE)
    freshness = _freshness(manager)
    assert all(freshness[f"g{number}.io"] == ("Stale" if number % 2 else "Current") for number in range(MANY))
    running.cancel()
    await asyncio.wait({running})


def _freshness(manager: DiscoveryManager) -> dict[str, str]:
    items = orjson.loads(manager.document().body(JSON))["items"]
    return {item["metadata"]["name"]: item["versions"][0]["freshness"] for item in items}

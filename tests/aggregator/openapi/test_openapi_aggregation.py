"""OpenAPI of the servers behind APIServices: asked for in the background, kept, merged, and gone with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from api_services import RemoteServer, api_service
from hypothesis import given, settings
from hypothesis import strategies as st
from swagger import swagger

from pilothouse.aggregator.download import DownloadFailed
from pilothouse.aggregator.openapi.controller import (
    FIRST_DELAY,
    SUCCESSFUL_UPDATE_DELAY,
    V2_NAME,
    V3_NAME,
    OpenAPIAggregationController,
)
from pilothouse.aggregator.openapi.documents import AggregatedOpenAPI
from pilothouse.aggregator.openapi.v2_aggregator import Ranked, RemoteService, SpecAggregator, by_priority
from pilothouse.aggregator.openapi.v3_aggregator import SpecProxier
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.openapi.containers import server_version_container
from pilothouse.apiserver.openapi.service import OpenAPIService
from pilothouse.client.fake_clock import FakeClock

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
V3 = {"openapi": "3.0.0", "info": {"title": "Remote", "version": "v0"}, "paths": {}}


class Both:
    """Both controllers, driven by a test: `update` asks the server of one APIService now."""

    def __init__(self) -> None:
        self.local = OpenAPIService()
        self.local.update(server_version_container())
        self._v2, self._v3 = SpecAggregator(timeout=0.2), SpecProxier(timeout=0.2)
        self.documents = AggregatedOpenAPI(self.local, self._v2, self._v3)

    async def update(self, server: Any, group: str = "a.io", version: str = "v1", **spec: Any) -> None:
        service = RemoteService.of(server, api_service(group, version, **spec))
        for aggregator in (self._v2, self._v3):
            aggregator.put(service)
            await aggregator.update(service.name)

    def remove(self, group: str = "a.io", version: str = "v1") -> None:
        self._v2.remove(f"{version}.{group}")
        self._v3.remove(f"{version}.{group}")

    async def v2(self) -> Any:
        return orjson.loads((await self.documents.merged().v2.get()).plain())

    async def index(self) -> Any:
        return orjson.loads((await self.documents.merged().v3_index.get()).plain())["paths"]

    async def v3(self, path: str) -> Any:
        document = await self.documents.v3(path)
        return None if document is None else orjson.loads(document.plain())


def serve(server: RemoteServer, group_version: str = "a.io/v1", digest: str = "A1", **definitions: Any) -> RemoteServer:
    server.serve("/openapi/v2", swagger(group_version, **definitions))
    path = f"apis/{group_version}"
    server.serve("/openapi/v3", {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}}})
    server.serve(f"/openapi/v3/{path}", V3 | {"x-version": digest}, etag=f'"{digest}"')
    return server


async def test_without_aggregated_servers_the_documents_are_those_of_this_one() -> None:
    both = Both()
    assert both.documents.merged().v2 is both.local.merged().v2
    assert both.documents.merged().v3_index is both.local.merged().v3_index


async def test_a_server_becomes_part_of_both_versions_and_leaves_them_as_they_were() -> None:
    both = Both()
    before = await both.documents.merged().v2.get(), await both.documents.merged().v3_index.get()
    await both.update(serve(RemoteServer(), Thing=TEXT))
    merged = await both.v2()
    assert merged["info"]["title"] == "Kubernetes"
    assert {"/version/", "/apis/a.io/v1/things"} <= merged["paths"].keys()
    assert merged["definitions"]["io.a.Thing"] == TEXT
    assert (await both.index())["apis/a.io/v1"] == {"serverRelativeURL": "/openapi/v3/apis/a.io/v1?hash=A1"}
    assert (await both.v3("apis/a.io/v1"))["x-version"] == "A1"
    both.remove()
    assert (await both.documents.merged().v2.get(), await both.documents.merged().v3_index.get()) == before
    assert await both.v3("apis/a.io/v1") is None


async def test_only_the_paths_of_the_apiservices_group_version_are_taken() -> None:
    server = serve(RemoteServer(), Thing=TEXT)
    document = swagger("a.io/v1", Thing=TEXT)
    document["paths"]["/api/v1/pods"] = document["paths"]["/apis/a.io/v1/things"]
    server.serve("/openapi/v2", document)
    index = {"serverRelativeURL": "/openapi/v3/api/v1?hash=X"}
    server.serve("/openapi/v3", {"paths": {"api/v1": index, "version": index}})
    both = Both()
    await both.update(server)
    assert "/api/v1/pods" not in (await both.v2())["paths"]
    assert (await both.index()).keys() == {"version"}


async def test_the_document_of_a_group_is_shown_where_nobody_here_has_one() -> None:
    server = serve(RemoteServer(), Thing=TEXT)
    paths = {f"apis/{name}": {"serverRelativeURL": f"/openapi/v3/apis/{name}?hash=G"} for name in ("a.io", "a.io/v1")}
    server.serve("/openapi/v3", {"paths": paths})
    server.serve("/openapi/v3/apis/a.io", V3 | {"x-version": "group"}, etag='"G"')
    both = Both()
    await both.update(server)
    assert (await both.v3("apis/a.io"))["x-version"] == "group"
    assert (await both.index()).keys() == {"apis/a.io", "apis/a.io/v1", "version"}


async def test_a_document_is_fetched_again_only_when_the_index_says_that_it_changed() -> None:
    server, both = serve(RemoteServer(), Thing=TEXT), Both()
    await both.update(server)
    merged = both.documents.merged()
    await both.update(server)
    assert server.asked.count("/openapi/v3/apis/a.io/v1") == 1
    assert both.documents.merged() is merged
    await both.update(serve(server, digest="B2", Thing=TEXT))
    assert (await both.v3("apis/a.io/v1"))["x-version"] == "B2"
    assert (await both.index())["apis/a.io/v1"]["serverRelativeURL"].endswith("?hash=B2")


async def test_a_server_is_asked_as_the_aggregator_with_the_etag_that_it_gave() -> None:
    server, both = serve(RemoteServer(), Thing=TEXT), Both()
    server.serve("/openapi/v2", swagger(Thing=TEXT), etag='"one"')
    await both.update(server)
    await both.update(server)
    asked = [request for request in server.requests if request.path == "/openapi/v2"]
    assert [request.header(b"if-none-match") for request in asked] == ["", '"one"']
    assert {request.user.name for request in server.requests} == {"system:aggregator"}


async def test_a_server_without_version_3_has_its_version_2_converted() -> None:
    server, both = RemoteServer(), Both()
    server.serve("/openapi/v2", swagger(Thing=TEXT))
    await both.update(server)
    document = await both.v3("apis/a.io/v1")
    assert document["components"]["schemas"] == {"io.a.Thing": TEXT}
    assert "apis/a.io/v1" in await both.index()


async def _hangs(request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def _breaks(request: Request) -> Response:
    raise ConnectionResetError


async def _babbles(request: Request) -> Response:
    return Response(200, b"<html>")


@pytest.mark.parametrize("dead", [_hangs, _breaks, _babbles])
async def test_a_server_that_fails_keeps_the_documents_that_it_last_had(dead: Any) -> None:
    both = Both()
    await both.update(serve(RemoteServer(), Thing=TEXT))
    with pytest.raises(DownloadFailed):
        await both.update(dead)
    assert "/apis/a.io/v1/things" in (await both.v2())["paths"]
    assert (await both.v3("apis/a.io/v1"))["x-version"] == "A1"


@pytest.mark.parametrize(
    "broken",
    [
        {"paths": []},
        {"paths": {"/apis/a.io/v1/x": {"get": {"parameters": [{"name": "x", "in": "nowhere"}], "responses": {}}}}},
        {"paths": {"/apis/a.io/v1/x": {"get": 7}}},
        {"paths": {"/apis/a.io/v1/x": {}}, "definitions": {"Unused": {"properties": ["x"]}}},
    ],
)
async def test_a_document_that_would_spoil_the_others_is_refused(broken: Any) -> None:
    both, server = Both(), serve(RemoteServer())
    server.serve("/openapi/v2", broken)
    await both.update(serve(RemoteServer(), "b.io/v1", Other=TEXT), "b.io")
    with pytest.raises(DownloadFailed):
        await both.update(server)
    assert (await both.v2())["paths"].keys() == {"/version/", "/apis/b.io/v1/others"}
    assert await both.documents.merged().v2_protobuf.get()


@settings(max_examples=25, deadline=None)
@given(st.permutations(["a.io", "b.io", "c.io", "d.io"]), st.sampled_from(["a.io", "b.io", "c.io", "d.io"]))
def test_the_documents_do_not_depend_on_the_order_in_which_apiservices_came(order: list[str], gone: str) -> None:
    schemas = {"a.io": TEXT, "b.io": NUMBER, "c.io": TEXT, "d.io": {"type": "boolean"}}

    async def merged(groups: list[str], remove: str = "") -> tuple[Any, Any]:
        both = Both()
        for group in groups:
            await both.update(serve(RemoteServer(), f"{group}/v1", Thing=schemas[group]), group)
        if remove:
            both.remove(remove)
        return await both.v2(), await both.index()

    rest = [group for group in sorted(order) if group != gone]
    assert asyncio.run(merged(order)) == asyncio.run(merged(sorted(order)))
    assert asyncio.run(merged(order, gone)) == asyncio.run(merged(rest))


def test_the_most_important_group_comes_first_and_in_it_the_most_important_version() -> None:
    wanted = [("a.io", "v1", 10, 1), ("a.io", "v2", 30, 2), ("b.io", "v1", 20, 9), ("c.io", "v1", 20, 9)]
    services = [
        api_service(group, version, groupPriorityMinimum=priority, versionPriority=own)
        for group, version, priority, own in wanted
    ]
    ranked = [Ranked(RemoteService.of(RemoteServer(), each)) for each in reversed(services)]
    assert [each.service.name for each in by_priority(ranked)] == ["v2.a.io", "v1.a.io", "v1.b.io", "v1.c.io"]


class Asked:
    """An aggregator that only counts."""

    def __init__(self) -> None:
        self.names: dict[str, bool] = {}
        self.updates: list[str] = []

    def put(self, service: RemoteService) -> None:
        self.names.setdefault(service.name, True)

    def remove(self, name: str) -> None:
        self.names.pop(name, None)

    async def update(self, name: str) -> bool:
        self.updates.append(name)
        if self.names.get(name) is False:
            raise DownloadFailed("no")
        return name in self.names


@pytest.fixture(params=[V2_NAME, V3_NAME])
async def controlled(
    request: pytest.FixtureRequest,
) -> AsyncIterator[tuple[OpenAPIAggregationController, Asked, FakeClock]]:
    asked, clock = Asked(), FakeClock()
    controller = OpenAPIAggregationController(request.param, asked, clock=clock)
    running = asyncio.create_task(controller.run())
    yield controller, asked, clock
    running.cancel()
    await asyncio.wait({running})


async def _pass(clock: FakeClock, seconds: float) -> None:
    await clock.wait_for_timer(seconds)
    clock.advance(seconds)


async def test_a_server_is_asked_after_a_second_and_then_every_minute(controlled: Any) -> None:
    controller, asked, clock = controlled
    controller.add_api_service(RemoteServer(), api_service("a.io"))
    for delay in (FIRST_DELAY, SUCCESSFUL_UPDATE_DELAY, SUCCESSFUL_UPDATE_DELAY):
        await _pass(clock, delay)
    await clock.wait_for_timer(SUCCESSFUL_UPDATE_DELAY)
    assert asked.updates == ["v1.a.io"] * 3


@pytest.mark.parametrize("aggregator", [SpecAggregator(), SpecProxier()], ids=["v2", "v3"])
async def test_a_document_that_changes_is_seen_within_a_minute(aggregator: SpecAggregator | SpecProxier) -> None:
    clock = FakeClock()
    controller = OpenAPIAggregationController("openapi", aggregator, clock=clock)
    running = asyncio.create_task(controller.run())
    server = serve(RemoteServer(), Thing=TEXT)
    controller.add_api_service(server, api_service("a.io"))
    await _pass(clock, FIRST_DELAY)
    for digest in ("A2", "A3"):
        await clock.wait_for_timer(SUCCESSFUL_UPDATE_DELAY)
        definitions: dict[str, Any] = {f"Thing{digest}": TEXT}
        serve(server, digest=digest, **definitions)
        clock.advance(SUCCESSFUL_UPDATE_DELAY)
    await clock.wait_for_timer(SUCCESSFUL_UPDATE_DELAY)
    assert [server.asked.count(f"/openapi/{version}") for version in ("v2", "v3")] in ([3, 0], [0, 3])
    controller.remove_api_service("v1.a.io")
    assert await aggregator.update("v1.a.io") is False
    running.cancel()
    await asyncio.wait({running})


async def test_a_failing_server_is_asked_later_each_time_and_soon_after_its_apiservice_changed(controlled: Any) -> None:
    controller, asked, clock = controlled
    asked.names["v1.a.io"] = False
    controller.add_api_service(RemoteServer(), api_service("a.io"))
    for delay in (FIRST_DELAY, 60.0, 120.0):
        await _pass(clock, delay)
    await clock.wait_for_timer(240.0)
    asked.names["v1.a.io"] = True
    controller.add_api_service(RemoteServer(), api_service("a.io"))
    await _pass(clock, FIRST_DELAY)
    await clock.wait_for_timer(SUCCESSFUL_UPDATE_DELAY)


async def test_a_working_server_is_asked_soon_only_when_the_spec_of_its_apiservice_has_changed(controlled: Any) -> None:
    controller, asked, clock = controlled
    controller.add_api_service(RemoteServer(), api_service("a.io"))
    await _pass(clock, FIRST_DELAY)
    await clock.wait_for_timer(SUCCESSFUL_UPDATE_DELAY)
    controller.add_api_service(RemoteServer(), api_service("a.io") | {"status": {}})
    assert clock.next_timer() == SUCCESSFUL_UPDATE_DELAY
    controller.add_api_service(RemoteServer(), api_service("a.io", caBundle="new"))
    assert clock.next_timer() == FIRST_DELAY
    assert asked.updates == ["v1.a.io"]


async def test_a_server_whose_apiservice_is_gone_or_local_is_not_asked_again(controlled: Any) -> None:
    controller, asked, clock = controlled
    controller.add_api_service(RemoteServer(), api_service("a.io"))
    controller.add_api_service(RemoteServer(), api_service("a.io", service=None))
    assert asked.names == {}
    controller.add_api_service(RemoteServer(), api_service("b.io"))
    for delay in (FIRST_DELAY, SUCCESSFUL_UPDATE_DELAY):
        await _pass(clock, delay)
    await clock.wait_for_timer(SUCCESSFUL_UPDATE_DELAY)
    assert asked.updates == ["v1.a.io", "v1.b.io", "v1.b.io"]

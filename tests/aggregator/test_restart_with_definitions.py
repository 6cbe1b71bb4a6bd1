"""A server that starts again leaves the APIServices of its definitions alone, and those of built-in groups, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from custom_resources import definition, events, eventually, install, version
from serving_process import refused
from whole_server import store_of, whole_server

from pilothouse.aggregator.api_services_to_register import make_api_service
from pilothouse.aggregator.autoregister import AUTO_REGISTER_MANAGED_LABEL, AutoRegisterController
from pilothouse.aggregator.crd_registration import PRIORITY, CRDRegistrationController
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.asgi import AsgiApp
from pilothouse.apiserver.storage.interface import Batch, Watch
from pilothouse.client.rest.connect import loopback
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of
from pilothouse.testing import API

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


async def until_registered(server: API, *names: str) -> None:
    missing = {*names}
    async for event in events(server, f"{API_SERVICES}?watch=true&timeoutSeconds=10"):
        missing.discard(name_of(event["object"]))
        if not missing:
            return
    raise AssertionError(f"{missing} never came")


def late_definition() -> Json:
    late = definition(plural="late", kind="Late", group="late.example.com")
    late["metadata"]["name"] = "late.late.example.com"
    return late


async def test_the_history_of_a_restart_has_no_write_to_an_api_service_that_was_there(tmp_path: Path) -> None:
    prefix = "/registry/apiregistration.k8s.io/apiservices/"
    async with whole_server(tmp_path) as server:
        await install(server, definition(version(), version("v2", storage=False)))
        await until_registered(server, "v1.example.com", "v2.example.com")
    async with store_of(tmp_path) as store:
        before = await store.current_revision()
    async with whole_server(tmp_path) as server:
        # its APIService comes after the controller has been through what there was at the start
        await install(server, late_definition())
        await until_registered(server, "v1.late.example.com")
    async with store_of(tmp_path) as store:
        watch, end = store.watch(prefix, after=before), await store.current_revision()
        written = [event.key async for batch in watch_until(watch, end) for event in batch.events]
        await watch.aclose()
    assert written == [f"{prefix}v1.late.example.com"]


async def test_a_built_in_version_that_is_no_longer_served_loses_its_api_service_when_the_server_starts(
    tmp_path: Path,
) -> None:
    async with whole_server(tmp_path) as server:
        assert (await server.request("GET", f"{API_SERVICES}/v1.policy")).status == 200
    async with whole_server(tmp_path, runtime_config="policy/v1=false") as server:
        await eventually(server, 404, "GET", f"{API_SERVICES}/v1.policy")
        assert (await server.request("GET", "/apis/policy/v1")).status == 404
    async with whole_server(tmp_path) as server:
        assert (await server.request("GET", f"{API_SERVICES}/v1.policy")).status == 200


async def test_where_definitions_are_turned_off_their_api_services_go_and_the_server_starts_all_the_same(
    tmp_path: Path,
) -> None:
    async with whole_server(tmp_path) as server:
        await install(server, definition())
        await until_registered(server, "v1.example.com")
    async with whole_server(tmp_path, runtime_config="apiextensions.k8s.io/v1=false") as server:
        await eventually(server, 404, "GET", f"{API_SERVICES}/v1.example.com")
        await eventually(server, 404, "GET", f"{API_SERVICES}/v1.apiextensions.k8s.io")
        assert (await server.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")).status == 404
        assert (await server.request("GET", "/apis/example.com/v1/widgets")).status == 404
    async with whole_server(tmp_path) as server:
        await until_registered(server, "v1.example.com", "v1.apiextensions.k8s.io")


def test_a_server_without_api_services_does_not_start(tmp_path: Path) -> None:
    outcome = refused(f"--data-dir={tmp_path}", "--secure-port=0", "--runtime-config=apiregistration.k8s.io/v1=false")
    assert outcome.stderr.endswith("Error: API group/version apiregistration.k8s.io/v1 must be enabled\n")


async def watch_until(watch: Watch, revision: int) -> AsyncIterator[Batch]:
    await watch.request_progress()
    async for batch in watch:
        yield batch
        if batch.revision >= revision:
            return


class SlowDefinitions:
    """Definitions that are known only after a while."""

    def __init__(self, *definitions: Json) -> None:
        self._definitions = {name_of(each): each for each in definitions}
        self._synced = asyncio.Event()
        self._listeners: list[Callable[[list[Json]], None]] = []

    def get(self, name: str) -> Json | None:
        return self._definitions.get(name)

    def listen(self, changed: Callable[[list[Json]], None]) -> None:
        self._listeners.append(changed)

    def come(self) -> None:
        for changed in self._listeners:
            changed(list(self._definitions.values()))
        self._synced.set()

    async def wait_synced(self) -> None:
        await self._synced.wait()


class Registered:
    """The APIServices that an earlier run has left."""

    def __init__(self, *api_services: Json) -> None:
        self._by_name = {name_of(each): each for each in api_services}

    def get(self, name: str) -> Json | None:
        return self._by_name.get(name)

    def all(self) -> list[Json]:
        return list(self._by_name.values())

    def listen(self, changed: Callable[[list[Json]], None]) -> None:
        changed(self.all())

    async def wait_synced(self) -> None: ...


def left_behind(group: str) -> Json:
    api_service = make_api_service(GroupVersion(group, "v1"), PRIORITY)
    api_service["metadata"] |= {"uid": group, "labels": {AUTO_REGISTER_MANAGED_LABEL: "true"}}
    return api_service


async def test_nothing_is_deleted_before_the_definitions_are_known_and_then_only_what_has_none() -> None:
    deleted: asyncio.Queue[str] = asyncio.Queue()

    async def api(request: Request) -> Response:
        deleted.put_nowait(f"{request.method} {request.path}")
        return Response(200, b"{}", [(b"content-type", b"application/json")])

    definitions = SlowDefinitions(definition())
    known = Registered(left_behind("example.com"), left_behind("gone.example.com"))
    auto = AutoRegisterController(known, loopback(AsgiApp(api)))
    crds = CRDRegistrationController(definitions, auto)
    running = [asyncio.create_task(crds.run()), asyncio.create_task(auto.run(after=crds))]
    for _ in range(20):
        await asyncio.sleep(0)
    assert deleted.empty()
    definitions.come()
    assert await deleted.get() == f"DELETE {API_SERVICES}/v1.gone.example.com"
    for _ in range(20):
        await asyncio.sleep(0)
    assert deleted.empty()
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)

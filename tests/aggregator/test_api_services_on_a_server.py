"""APIServices through a whole server: registered at the start, with definitions, and by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from custom_resources import DEFINITIONS, definition, events, eventually, install, until_gone, version
from patience import PATIENCE
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf import codec
from pilothouse.testing import API

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MANAGED = "kube-aggregator.kubernetes.io/automanaged"
MERGE = "application/merge-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


def api_service(name: str = "v1.remote.example.com", **spec: Any) -> Json:
    version_name, _, group = name.partition(".")
    wanted = {"group": group, "version": version_name, "groupPriorityMinimum": 50, "versionPriority": 10, **spec}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name},
        "spec": wanted,
    }


async def until(server: API, name: str, **spec: int) -> Json:
    """The APIService as soon as its spec has these values."""
    target = f"{API_SERVICES}?watch=true&timeoutSeconds=10&fieldSelector=metadata.name%3D{name}"
    async for event in events(server, target):
        obj: Json = event["object"]
        if event["type"] != "DELETED" and spec.items() <= obj["spec"].items():
            return obj
    raise AssertionError(f"{name} never had {spec}")


async def until_not_listed(server: API, group: str) -> None:
    async def listed() -> set[str]:
        return {each["name"] for each in (await server.request("GET", "/apis")).json["groups"]}

    async with asyncio.timeout(PATIENCE):
        while group in await listed():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0)


async def test_every_built_in_group_version_has_an_available_api_service_when_the_server_is_ready(
    server: API,
) -> None:
    found = (await server.request("GET", API_SERVICES)).json["items"]
    assert {each["metadata"]["labels"][MANAGED] for each in found} == {"onstart"}
    assert {each["status"]["conditions"][0]["reason"] for each in found} == {"Local"}
    by_name = {each["metadata"]["name"]: each["spec"] for each in found}
    assert by_name["v1."] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    assert "v1.apiregistration.k8s.io" not in by_name
    groups = (await server.request("GET", "/apis")).json["groups"]
    assert {f"{v['version']}.{g['name']}" for g in groups[1:] for v in g["versions"]} == {*by_name} - {"v1."}


async def test_groups_are_listed_by_priority_after_the_aggregators_own(server: API) -> None:
    groups = [group["name"] for group in (await server.request("GET", "/apis")).json["groups"]]
    assert groups[:4] == ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"]
    # equal priority: by the name of the first APIService, which begins with its version
    await server.request("POST", API_SERVICES, api_service("v1.b.example.com", groupPriorityMinimum=16200))
    await server.request("POST", API_SERVICES, api_service("v2.a.example.com", groupPriorityMinimum=16200))
    await eventually(server, 200, "GET", "/apis/a.example.com")
    groups = [group["name"] for group in (await server.request("GET", "/apis")).json["groups"]]
    assert groups[groups.index("b.example.com") :][:4] == [
        "b.example.com",
        "discovery.k8s.io",
        "resource.k8s.io",
        "a.example.com",
    ]


async def test_a_definitions_versions_have_api_services_as_long_as_they_are_served(server: API) -> None:
    await install(server, definition(version(), version("v2", storage=False)))
    first = await until(server, "v1.example.com", groupPriorityMinimum=1000, versionPriority=100)
    assert first["metadata"]["labels"] == {MANAGED: "true"}
    await until(server, "v2.example.com")
    unserved = definition(version(), version("v2", storage=False, served=False))["spec"]["versions"]
    target = f"{DEFINITIONS}/widgets.example.com"
    assert (await server.request("PATCH", target, {"spec": {"versions": unserved}}, media=MERGE)).status == 200
    await eventually(server, 404, "GET", f"{API_SERVICES}/v2.example.com")
    await server.request("DELETE", target)
    await until_gone(server, "widgets.example.com")
    await eventually(server, 404, "GET", f"{API_SERVICES}/v1.example.com")
    await eventually(server, 404, "GET", "/apis/example.com")


async def test_a_definitions_api_service_is_restored_and_a_built_in_one_is_left_alone(server: API) -> None:
    await install(server, definition())
    await until(server, "v1.example.com")
    changed = {"spec": {"groupPriorityMinimum": 7}}
    assert (await server.request("PATCH", f"{API_SERVICES}/v1.example.com", changed, media=MERGE)).status == 200
    await until(server, "v1.example.com", groupPriorityMinimum=1000)
    await server.request("DELETE", f"{API_SERVICES}/v1.example.com")
    await until(server, "v1.example.com")
    # made right once, at the start
    assert (await server.request("DELETE", f"{API_SERVICES}/v1.policy")).status == 200
    await eventually(server, 404, "GET", f"{API_SERVICES}/v1.policy")
    await until_not_listed(server, "policy")
    # who asks for the group itself still finds it: the server below serves it
    assert (await server.request("GET", "/apis/policy")).json["kind"] == "APIGroup"


async def test_paths_of_an_api_service_come_and_go_with_it(server: API) -> None:
    spec: Json = {"service": {"namespace": "default", "name": "ext"}, "insecureSkipTLSVerify": True}
    created = await server.request("POST", API_SERVICES, api_service(**spec))
    assert (created.status, created.json["spec"]["service"]["port"], created.json["status"]) == (201, 443, {})
    group = (await eventually(server, 200, "GET", "/apis/remote.example.com")).json
    shown = {"groupVersion": "remote.example.com/v1", "version": "v1"}
    assert group == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "remote.example.com",
        "versions": [shown],
        "preferredVersion": shown,
    }
    assert (await server.request("GET", "/apis/remote.example.com/v1/things")).status == 503
    paths = (await server.request("GET", "/")).json["paths"]
    assert {"/apis/remote.example.com", "/apis/remote.example.com/v1"} <= {*paths}
    await server.request("DELETE", f"{API_SERVICES}/v1.remote.example.com")
    await eventually(server, 404, "GET", "/apis/remote.example.com")
    await eventually(server, 404, "GET", "/apis/remote.example.com/v1/things")


async def test_nobody_can_take_the_aggregators_own_group(server: API) -> None:
    for name in ("v1.apiregistration.k8s.io", "v2.apiregistration.k8s.io"):
        assert (await server.request("POST", API_SERVICES, api_service(name))).status == 201
        await server.request("DELETE", f"{API_SERVICES}/{name}")
    await server.request("POST", API_SERVICES, api_service("v1.last.example.com"))
    await eventually(server, 200, "GET", "/apis/last.example.com")
    assert (await server.request("GET", API_SERVICES)).status == 200
    assert (await server.request("GET", "/apis/apiregistration.k8s.io")).json["kind"] == "APIGroup"


async def test_the_table_shows_who_serves_and_whether_it_is_available(server: API) -> None:
    remote = api_service(service={"namespace": "default", "name": "ext"}, insecureSkipTLSVerify=True)
    (new,) = (await server.request("POST", f"{API_SERVICES}?dryRun=All", remote, accept=TABLE)).json["rows"]
    assert new["cells"][:3] == ["v1.remote.example.com", "default/ext", "Unknown"]
    table = (await server.request("GET", API_SERVICES, accept=TABLE)).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Service", "Available", "Age"]
    cells = {row["cells"][0]: row["cells"][1:3] for row in table["rows"]}
    assert cells["v1.apps"] == ["Local", "True"]


async def test_documents_of_groups_are_given_whatever_the_method_and_those_of_versions_are_not(
    server: API,
) -> None:
    for method in ("HEAD", "POST", "DELETE"):
        assert (await server.request(method, "/apis")).status == 200
        assert (await server.request(method, "/apis/apps")).status == 200
        assert (await server.request(method, "/apis/apps/v1")).status == 405
        assert (await server.request(method, "/api")).status == 405


async def test_api_services_are_read_and_written_as_protobuf(server: API) -> None:
    wanted = api_service("v1.g", service={"namespace": "n", "name": "s", "port": 8443})
    created = await server.request("POST", API_SERVICES, codec.encode(wanted), media=PROTOBUF)
    assert (created.status, created.json["spec"]) == (201, wanted["spec"])
    shown = (await server.request("GET", f"{API_SERVICES}/v1.g", accept=PROTOBUF)).body
    # the fields by upstream's numbers: service (namespace, name, port), group, version, insecure, the two priorities
    service = b"\x0a\x01n" + b"\x12\x01s" + b"\x18\xfb\x41"
    spec = b"\x0a\x09" + service + b"\x12\x01g" + b"\x1a\x02v1" + b"\x20\x00" + b"\x38\x32" + b"\x40\x0a"
    assert b"\x12" + bytes([len(spec)]) + spec in shown
    assert codec.decode(shown)["spec"] == wanted["spec"]


async def test_requests_are_answered_all_the_time_while_api_services_come_and_go(server: API) -> None:
    await install(server, definition())
    await until(server, "v1.example.com")
    answers: set[int] = set()

    async def ask() -> None:
        while True:
            answers.add((await server.request("GET", "/apis/example.com/v1/widgets")).status)
            answers.add((await server.request("GET", "/apis/example.com")).status)
            await asyncio.sleep(0)

    asking = asyncio.create_task(ask())
    for _ in range(5):
        gone = (await server.request("GET", f"{API_SERVICES}/v1.example.com")).json["metadata"]["uid"]
        assert (await server.request("DELETE", f"{API_SERVICES}/v1.example.com")).status == 200
        assert (await until(server, "v1.example.com"))["metadata"]["uid"] != gone
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert answers == {200}

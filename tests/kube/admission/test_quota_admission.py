"""Quotas at work on a whole server: what is used is charged, never beyond the limit, however many write at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from whole_server import whole_server

from pilothouse.machinery.objects import Json
from pilothouse.testing import API, Answer

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[API]:
    async with whole_server(tmp_path) as running:
        yield running


async def quota(server: API, name: str, hard: Json, used: Json | None) -> None:
    """A quota as the quota controller leaves it. Returns when admission knows of it."""
    await server.request("POST", QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard}})
    status: Json = {"hard": hard} | ({"used": used} if used is not None else {})
    answer = await server.request(
        "PATCH", f"{QUOTAS}/{name}/status", {"status": status}, media="application/merge-patch+json"
    )
    version = answer.json["metadata"]["resourceVersion"]
    await server.request("GET", f"{QUOTAS}?resourceVersion={version}")


async def used(server: API, name: str) -> Json:
    found: Json = (await server.request("GET", f"{QUOTAS}/{name}")).json["status"]["used"]
    return found


def config_map(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


async def test_writers_at_the_same_time_share_what_is_left(server: API) -> None:
    await quota(server, "q", {"count/configmaps": "3"}, {"count/configmaps": "0"})
    answers = await asyncio.gather(*(server.request("POST", CONFIG_MAPS, config_map(f"c{n}")) for n in range(8)))
    assert sorted(answer.status for answer in answers) == [201] * 3 + [403] * 5
    assert await used(server, "q") == {"count/configmaps": "3"}


async def test_usage_belongs_to_the_server_once_it_is_charged(server: API) -> None:
    await quota(server, "q", {"configmaps": "5", "pods": "1"}, {"configmaps": "1", "pods": "0"})
    assert (await server.request("POST", CONFIG_MAPS, config_map("c"))).status == 201
    entries = (await server.request("GET", f"{QUOTAS}/q")).json["metadata"]["managedFields"]
    (own,) = [entry for entry in entries if entry["manager"] == "kube-apiserver"]
    assert (own["operation"], own["apiVersion"], own["subresource"]) == ("Update", "v1", "status")
    assert own["fieldsV1"] == {"f:status": {"f:used": {"f:configmaps": {}}}}
    (status,) = [entry for entry in entries if entry.get("subresource") == "status" and entry is not own]
    assert status["fieldsV1"]["f:status"]["f:used"] == {".": {}, "f:pods": {}}


async def test_every_quota_that_counts_an_object_is_charged(server: API) -> None:
    await quota(server, "a", {"configmaps": "5"}, {"configmaps": "1"})
    await quota(server, "b", {"count/configmaps": "1", "pods": "1"}, {"count/configmaps": "0", "pods": "0"})
    assert (await server.request("POST", CONFIG_MAPS, config_map("c"))).status == 201
    assert (await used(server, "a"), (await used(server, "b"))["count/configmaps"]) == ({"configmaps": "2"}, "1")
    refused = await server.request("POST", CONFIG_MAPS, config_map("d"))
    assert refused.json["message"] == (
        'configmaps "d" is forbidden: exceeded quota: b, requested: count/configmaps=1, '
        "used: count/configmaps=1, limited: count/configmaps=1"
    )
    assert await used(server, "a") == {"configmaps": "2"}


async def test_a_dry_run_is_checked_but_not_charged(server: API) -> None:
    await quota(server, "q", {"configmaps": "1"}, {"configmaps": "0"})
    assert (await server.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("c"))).status == 201
    assert await used(server, "q") == {"configmaps": "0"}
    assert (await server.request("POST", CONFIG_MAPS, config_map("c"))).status == 201
    assert (await server.request("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("d"))).status == 403


async def test_nothing_is_created_while_it_is_unknown_what_is_used(server: API) -> None:
    await quota(server, "q", {"configmaps": "1"}, None)
    refused = await server.request("POST", CONFIG_MAPS, config_map("c"))
    assert refused.json["message"] == (
        'configmaps "c" is forbidden: status unknown for quota: q, resources: configmaps'
    )


async def test_an_update_is_charged_for_what_it_uses_more(server: API) -> None:
    await quota(server, "q", {"services.nodeports": "2"}, {"services.nodeports": "0"})
    services = "/api/v1/namespaces/default/services"
    spec: Json = {"type": "ClusterIP", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}
    assert (await server.request("POST", services, {"metadata": {"name": "s"}, "spec": spec})).status == 201
    assert await used(server, "q") == {"services.nodeports": "0"}
    patch: Json = {"spec": {"type": "NodePort"}}
    assert (await server.request("PATCH", f"{services}/s", patch, media="application/merge-patch+json")).status == 200
    assert await used(server, "q") == {"services.nodeports": "2"}
    more = await server.request("POST", services, {"metadata": {"name": "t"}, "spec": spec | {"type": "NodePort"}})
    assert more.status == 403


async def test_devices_are_limited_by_class_and_by_what_pods_call_it(server: API) -> None:
    spec = {"extendedResourceName": "example.com/gpu"}
    classes = "/apis/resource.k8s.io/v1/deviceclasses"
    made = await server.request("POST", classes, {"metadata": {"name": "gpu"}, "spec": spec})
    await server.request("GET", f"{classes}?resourceVersion={made.json['metadata']['resourceVersion']}")
    by_class, by_name = "gpu.deviceclass.resource.k8s.io/devices", "requests.example.com/gpu"
    await quota(server, "q", {by_class: "3", by_name: "2"}, {by_class: "0", by_name: "0"})

    async def claim(name: str, count: int) -> Answer:
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
        devices = {"requests": [{"name": "r", "exactly": exactly}]}
        body = {"metadata": {"name": name}, "spec": {"devices": devices}}
        return await server.request("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", body)

    refused = await claim("a", 4)
    assert (refused.status, refused.json["message"]) == (
        403,
        f'resourceclaims.resource.k8s.io "a" is forbidden: exceeded quota: q, requested: {by_class}=4,{by_name}=4, '
        f"used: {by_class}=0,{by_name}=0, limited: {by_class}=3,{by_name}=2",
    )
    assert (await claim("b", 2)).status == 201
    assert await used(server, "q") == {by_class: "2", by_name: "2"}

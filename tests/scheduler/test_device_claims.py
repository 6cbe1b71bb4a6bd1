"""Claims of devices: which node has what they ask for, and that it is given once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from modelled_cluster import ModelledCluster, node, pod
from patience import PATIENCE
from whole_server import whole_server

from pilothouse.client import Client, ListOptions
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo

DRIVER = "gpu.example.com"
CLAIMED = [{"name": "gpu", "resourceClaimName": "gpu"}]
TAINT = {"key": "sick", "effect": "NoSchedule"}


def device(name: str, model: str = "a", memory: str = "10Gi", **fields: Any) -> Json:
    attributes = {"model": {"string": model}, "version": {"version": "1.2.0"}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **fields}


def resource_slice(where: str, *devices: Json) -> Json:
    pool = {"name": where or "shared", "generation": 1, "resourceSliceCount": 1}
    place = {"nodeName": where} if where else {"allNodes": True}
    return {
        "metadata": {"name": f"slice-{where or 'shared'}"},
        "spec": {"driver": DRIVER, "pool": pool, **place, "devices": list(devices)},
    }


def device_class(expression: str = f'device.driver == "{DRIVER}"') -> Json:
    return {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def claim(name: str = "gpu", *, constraints: list[Json] | None = None, **exactly: Any) -> Json:
    request = {
        "name": "r",
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **exactly},
    }
    devices = {"requests": [request], "constraints": constraints or []}
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"devices": devices}}


def cel(expression: str) -> Json:
    return {"selectors": [{"cel": {"expression": expression}}]}


ON_A, ON_B = resource_slice("a", device("0")), resource_slice("b", device("0", "b", "40Gi"), device("1", "b"))
MANY = resource_slice("a", *(device(str(number)) for number in range(2000)))
TAKEN = {"devices": {"results": [{"driver": DRIVER, "pool": "a", "device": "0", "request": "r"}]}}

CASES: list[tuple[str, list[Json], Json, set[str]]] = [
    ("where there is a device", [ON_A], claim(), {"a"}),
    ("where there are enough devices", [ON_A, ON_B], claim(count=2), {"b"}),
    ("where a claim may have so many", [MANY], claim(count=32), {"a"}),
    ("nowhere, if a claim may not have so many", [MANY], claim(count=33), set()),
    ("nowhere, however many it asks for", [MANY], claim(count=2**31 - 1), set()),
    ("nowhere, if all are more than a claim may have", [MANY], claim(allocationMode="All"), set()),
    ("anywhere, for a device that all can reach", [resource_slice("", device("0"))], claim(), {"a", "b"}),
    ("nowhere without devices", [], claim(), set()),
    ("by an attribute", [ON_A, ON_B], claim(**cel(f'device.attributes["{DRIVER}"].model == "b"')), {"b"}),
    (
        "by a capacity",
        [ON_A, ON_B],
        claim(**cel(f'device.capacity["{DRIVER}"].memory.compareTo(quantity("20Gi")) >= 0')),
        {"b"},
    ),
    (
        "by a version",
        [ON_A],
        claim(**cel(f'device.attributes["{DRIVER}"].version.isGreaterThan(semver("1.0.0"))')),
        {"a"},
    ),
    (
        "with devices that are alike",
        [resource_slice("a", device("0", "x"), device("1", "y")), ON_B],
        claim(count=2, constraints=[{"matchAttribute": f"{DRIVER}/model"}]),
        {"b"},
    ),
    ("away from tainted devices", [resource_slice("a", device("0", taints=[TAINT])), ON_B], claim(), {"b"}),
    (
        "with tainted devices that are tolerated",
        [resource_slice("a", device("0", taints=[TAINT]))],
        claim(tolerations=[{"key": "sick", "operator": "Exists"}]),
        {"a"},
    ),
    ("where all devices are free", [ON_A, ON_B], claim(allocationMode="All"), {"a", "b"}),
    (
        "where it has been given its devices",
        [ON_A, ON_B],
        {
            **claim(),
            "status": {
                "allocation": {
                    "nodeSelector": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
                        ]
                    }
                }
            },
        },
        {"b"},
    ),
]


def cluster_with(slices: list[Json], *claims: Json) -> ModelledCluster:
    cluster = ModelledCluster(node("a"), node("b"))
    listers = cluster.handle.listers
    listers.device_classes.add(device_class())
    for each in slices:
        listers.resource_slices.add(each)
    for each in claims:
        listers.resource_claims.add(each)
    return cluster


@pytest.mark.parametrize(("slices", "wanted", "nodes"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_pod_with_a_claim_of_devices_can_be(slices: list[Json], wanted: Json, nodes: set[str]) -> None:
    assert cluster_with(slices, wanted).fitting(pod(resourceClaims=CLAIMED)) == nodes


def test_a_device_that_another_claim_has_is_not_free() -> None:
    other = {**claim("other"), "status": {"allocation": TAKEN}}
    assert cluster_with([ON_A], claim(), other).fitting(pod(resourceClaims=CLAIMED)) == set()


def test_the_first_alternative_that_there_is_will_do() -> None:
    wanted = claim()
    large, any_other = (
        {"name": name, "deviceClassName": "gpu", "count": count} for name, count in (("many", 5), ("one", 1))
    )
    wanted["spec"]["devices"]["requests"] = [{"name": "r", "firstAvailable": [large, any_other]}]
    cluster = cluster_with([ON_A], wanted)
    assert cluster.fitting(pod(resourceClaims=CLAIMED)) == {"a"}


def test_a_pod_is_not_tried_before_its_claim_is_there() -> None:
    cluster = cluster_with([ON_A])
    waiting = PodInfo(pod(resourceClaims=CLAIMED))
    assert cluster.framework.pre_enqueue(waiting) == "DynamicResources"
    cluster.handle.listers.resource_claims.add(claim())
    assert cluster.framework.pre_enqueue(waiting) == ""


def test_a_pod_is_told_that_its_claims_can_not_be_allocated() -> None:
    reason = "2 cannot allocate all claims."
    cluster = cluster_with([], claim())
    assert cluster.why_not(pod(resourceClaims=CLAIMED)) == f"0/2 nodes are available: {reason}"


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with whole_server(tmp_path, scheduler=True, authorization_mode="RBAC") as server:
        yield server.client(in_process=True)


async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound(client: Client) -> None:
    nodes, version = client.resource("v1", "nodes"), "resource.k8s.io/v1"
    await nodes.create(node("a"))
    await nodes.patch("a", {"status": node("a")["status"]}, subresource="status")
    await nodes.patch("a", {"spec": {"taints": None}})
    await client.resource(version, "deviceclasses").create(device_class())
    await client.resource(version, "resourceslices").create(ON_A)
    claims = client.resource(version, "resourceclaims", namespace="default")
    await claims.create({"metadata": {"name": "gpu"}, "spec": claim()["spec"]})
    pods = client.resource("v1", "pods", namespace="default")
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    await pods.create({"metadata": {"name": "web"}, "spec": {"containers": [container], "resourceClaims": CLAIMED}})
    async with asyncio.timeout(PATIENCE), await pods.watch(ListOptions(field_selector="metadata.name=web")) as watch:
        async for event in watch:
            if event.object["spec"].get("nodeName"):
                break
    written = await claims.get("gpu")
    assert "resource.kubernetes.io/delete-protection" in written["metadata"]["finalizers"]
    [result] = written["status"]["allocation"]["devices"]["results"]
    assert {key: result[key] for key in ("driver", "pool", "device")} == {"driver": DRIVER, "pool": "a", "device": "0"}
    assert written["status"]["reservedFor"][0]["name"] == "web"

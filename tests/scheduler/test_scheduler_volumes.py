"""Volumes that say where a pod can be, and volumes that wait for a pod to be somewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from modelled_cluster import HOSTNAME, ZONE, ModelledCluster, node, pod
from patience import PATIENCE
from whole_server import whole_server

from pilothouse.client import Client, ListOptions
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.pod_info import PodInfo

CLASS = "local"
CLAIMED = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def claim(*, volume: str = "", annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    meta = {"name": "data", "namespace": "default", "uid": "claim", "annotations": annotations or {}}
    requests = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    return {"metadata": meta, "spec": {"storageClassName": CLASS, "volumeName": volume, **requests, **spec}}


def volume(name: str = "disk", *, on: str = "", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if on else {}
    has = {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS}
    meta = {"name": name, "labels": labels or {}}
    return {"metadata": meta, "spec": {**has, **affinity, **spec}, "status": {"phase": "Available"}}


def storage_class(mode: str = "WaitForFirstConsumer", provisioner: str = "example.com/p", **fields: Any) -> Json:
    return {"metadata": {"name": CLASS}, "provisioner": provisioner, "volumeBindingMode": mode, **fields}


ONLY_B = [{"matchLabelExpressions": [{"key": HOSTNAME, "values": ["b"]}]}]
NO_PROVISIONER = "kubernetes.io/no-provisioner"

CASES: list[tuple[str, dict[str, list[Json]], set[str]]] = [
    (
        "where the volume of its claim is",
        {"claims": [claim(volume="disk", annotations=BOUND)], "volumes": [volume(on="b")]},
        {"b"},
    ),
    (
        "where a volume that fits is free",
        {
            "claims": [claim()],
            "volumes": [volume(on="b")],
            "storage_classes": [storage_class(provisioner=NO_PROVISIONER)],
        },
        {"b"},
    ),
    (
        "nowhere, if the free volume is too small",
        {
            "claims": [claim()],
            "volumes": [volume(on="b", capacity={"storage": "1Mi"})],
            "storage_classes": [storage_class(provisioner=NO_PROVISIONER)],
        },
        set(),
    ),
    ("anywhere, if a volume is made", {"claims": [claim()], "storage_classes": [storage_class()]}, {"a", "b"}),
    (
        "where a volume may be made",
        {"claims": [claim()], "storage_classes": [storage_class(allowedTopologies=ONLY_B)]},
        {"b"},
    ),
    (
        "where one is being made already",
        {
            "claims": [claim(annotations={"volume.kubernetes.io/selected-node": "b"})],
            "storage_classes": [storage_class()],
        },
        {"b"},
    ),
    (
        "where there is enough space for a new one",
        {
            "claims": [claim()],
            "storage_classes": [storage_class()],
            "csi_drivers": [{"metadata": {"name": "example.com/p"}, "spec": {"storageCapacity": True}}],
            "csi_storage_capacities": [
                {
                    "metadata": {"name": "c", "namespace": "default"},
                    "storageClassName": CLASS,
                    "capacity": "5Gi",
                    "nodeTopology": {"matchLabels": {HOSTNAME: "a"}},
                }
            ],
        },
        {"a"},
    ),
    (
        "in the zone of the volume",
        {"claims": [claim(volume="disk", annotations=BOUND)], "volumes": [volume(labels={ZONE: "2"})]},
        {"b"},
    ),
    (
        "where there are not too many volumes yet",
        {
            "claims": [claim(volume="disk", annotations=BOUND)],
            "volumes": [volume(csi={"driver": "d", "volumeHandle": "h"})],
            "csi_nodes": [
                {"metadata": {"name": "a"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 0}}]}}
            ],
        },
        {"b"},
    ),
]


@pytest.mark.parametrize(("objects", "nodes"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_pod_with_a_claim_can_be(objects: dict[str, list[Json]], nodes: set[str]) -> None:
    cluster = ModelledCluster(node("a", zone="1"), node("b", zone="2"))
    for kind, each in objects.items():
        for obj in each:
            getattr(cluster.handle.listers, kind).add(obj)
    assert cluster.fitting(pod(volumes=CLAIMED)) == nodes


def test_a_claim_that_should_be_bound_by_now_is_a_reason() -> None:
    cluster = ModelledCluster(node("a"))
    cluster.handle.listers.claims.add(claim())
    cluster.handle.listers.storage_classes.add(storage_class("Immediate"))
    reason = "pod has unbound immediate PersistentVolumeClaims."
    assert cluster.why_not(pod(volumes=CLAIMED)) == f"0/1 nodes are available: {reason}"


def test_a_claim_for_one_pod_keeps_others_away() -> None:
    cluster = ModelledCluster(node("a"), node("b"), pod("first", on="a", volumes=CLAIMED))
    cluster.handle.listers.claims.add(claim(volume="disk", annotations=BOUND, accessModes=["ReadWriteOncePod"]))
    cluster.handle.listers.volumes.add(volume())
    assert "already in-use by another pod" in cluster.why_not(pod("second", volumes=CLAIMED))


def test_a_disk_is_on_one_node_for_one_writer() -> None:
    disk = [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]
    cluster = ModelledCluster(node("a"), node("b"), pod("first", on="a", volumes=disk))
    assert cluster.fitting(pod("second", volumes=disk)) == {"b"}


def test_a_volume_that_is_promised_to_a_pod_is_not_free_for_another() -> None:
    cluster = ModelledCluster(node("a"), node("b"))
    listers = cluster.handle.listers
    listers.claims.add(claim())
    other = claim()
    other["metadata"] = {**other["metadata"], "name": "more", "uid": "more"}
    listers.claims.add(other)
    listers.volumes.add(volume(on="b"))
    listers.storage_classes.add(storage_class(provisioner=NO_PROVISIONER))
    first = pod("first", volumes=CLAIMED)
    chosen = cluster.cycle.find_node(PodInfo(first))
    cluster.framework.reserve(PodInfo(first), chosen)
    second = pod("second", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "more"}}])
    assert cluster.fitting(second) == set()
    cluster.framework.unreserve(PodInfo(first), chosen.name)
    assert cluster.fitting(second) == {"b"}


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    binder = "persistentvolume-binder-controller"
    async with whole_server(tmp_path, scheduler=True, controllers=binder, authorization_mode="RBAC") as server:
        yield server.client(in_process=True)


async def test_a_volume_that_waits_for_its_pod_is_bound_before_the_pod_is(client: Client) -> None:
    nodes = client.resource("v1", "nodes")
    await nodes.create(node("a"))
    await nodes.patch("a", {"status": node("a")["status"]}, subresource="status")
    await nodes.patch("a", {"spec": {"taints": None}})
    await client.resource("storage.k8s.io/v1", "storageclasses").create(storage_class(provisioner=NO_PROVISIONER))
    wanted = volume(on="a", hostPath={"path": "/data"})
    await client.resource("v1", "persistentvolumes").create({key: wanted[key] for key in ("metadata", "spec")})
    claims = client.resource("v1", "persistentvolumeclaims", namespace="default")
    await claims.create({"metadata": {"name": "data"}, "spec": claim()["spec"]})
    pods = client.resource("v1", "pods", namespace="default")
    waiting = {"containers": [{"name": "c", "image": "i"}], "volumes": CLAIMED}
    await pods.create({"metadata": {"name": "web"}, "spec": waiting})
    async with asyncio.timeout(PATIENCE):
        async with await pods.watch(ListOptions(field_selector="metadata.name=web")) as watch:
            async for event in watch:
                if event.object["spec"].get("nodeName"):
                    break
    assert (await claims.get("data"))["spec"]["volumeName"] == "disk"
    assert event.object["status"].get("nominatedNodeName") in (None, "a")

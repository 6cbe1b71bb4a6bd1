"""Volumes and claims that are in use stay until they are not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from awaiting import until, until_gone
from controllers_on_a_server import ControlledServer, controlled_server, running
from prometheus_client import CollectorRegistry

from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.controllers.volume.pvc_protection import uses
from pilothouse.machinery.objects import Json, metadata

NOW = DeleteOptions(grace_period_seconds=0)
PV_FINALIZER, PVC_FINALIZER = "kubernetes.io/pv-protection", "kubernetes.io/pvc-protection"


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def manager(server: ControlledServer) -> ControllerManager:
    chosen = enabled(["pv-protection", "pvc-protection"])
    return ControllerManager(server.client, chosen, registry=CollectorRegistry())


def claims(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "persistentvolumeclaims", namespace="default")


def pods(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "pods", namespace="default")


async def claim(server: ControlledServer, name: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await claims(server).create({"metadata": {"name": name}, "spec": spec})


async def pod(server: ControlledServer, name: str, *names: str, node: str = "n") -> None:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]
    spec: Json = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    await pods(server).create({"metadata": {"name": name}, "spec": spec | ({"nodeName": node} if node else {})})


async def test_an_unused_claim_is_deleted_at_once(server: ControlledServer) -> None:
    await claim(server, "free")
    await claim(server, "planned")
    await pod(server, "waiting", "planned", node="")
    async with running(manager(server)):
        for name in ("free", "planned"):
            await claims(server).delete(name)
            await until_gone(claims(server), name)


async def test_a_claim_stays_until_the_last_pod_on_a_node_is_gone(server: ControlledServer) -> None:
    await claim(server, "data")
    await claim(server, "other")
    for name in ("first", "second"):
        await pod(server, name, "data")
    await claims(server).delete("data")
    async with running(manager(server)):
        await pods(server).delete("first", NOW)
        await claims(server).delete("other")
        await until_gone(claims(server), "other")
        assert PVC_FINALIZER in metadata(await claims(server).get("data"))["finalizers"]
        await pods(server).delete("second", NOW)
        await until_gone(claims(server), "data")


async def test_a_claim_whose_pods_were_deleted_during_downtime_is_deleted_at_startup(server: ControlledServer) -> None:
    await claim(server, "data")
    await pod(server, "only", "data")
    await claims(server).delete("data")
    await pods(server).delete("only", NOW)
    async with running(manager(server)):
        await until_gone(claims(server), "data")


async def test_a_missing_finalizer_is_restored(server: ControlledServer) -> None:
    await claim(server, "data")
    async with running(manager(server)):
        await claims(server).patch("data", {"metadata": {"finalizers": None}})
        await until(claims(server), "data", lambda found: metadata(found).get("finalizers") == [PVC_FINALIZER])


async def test_a_volume_stays_while_it_is_bound(server: ControlledServer) -> None:
    volumes = server.client.resource("v1", "persistentvolumes")
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    for name in ("bound", "free"):
        await volumes.create({"metadata": {"name": name}, "spec": spec})
    await volumes.patch("bound", {"status": {"phase": "Bound"}}, subresource="status")
    async with running(manager(server)):
        for name in ("bound", "free"):
            await volumes.delete(name)
        await until_gone(volumes, "free")
        assert metadata(await volumes.get("bound"))["finalizers"] == [PV_FINALIZER]
        await volumes.patch("bound", {"status": {"phase": "Released"}}, subresource="status")
        await until_gone(volumes, "bound")


@pytest.mark.parametrize(
    ("meta", "owner", "used"),
    [
        ({}, "u", True),
        ({}, "another", False),
        ({"deletionTimestamp": "2026-05-01T12:00:00Z", "deletionGracePeriodSeconds": 30}, "u", True),
        ({"deletionTimestamp": "2026-05-01T12:00:00Z", "deletionGracePeriodSeconds": 0}, "u", False),
    ],
)
def test_a_claim_of_an_ephemeral_volume_is_used_by_its_own_pod_until_that_is_shut_down(
    meta: Json, owner: str, used: bool
) -> None:
    spec: Json = {"nodeName": "n", "volumes": [{"name": "v", "ephemeral": {}}]}
    made: Json = {"metadata": {"name": "p-v", "ownerReferences": [{"uid": owner, "controller": True}]}}
    assert uses({"metadata": {"name": "p", "uid": "u", **meta}, "spec": spec}, made) is used

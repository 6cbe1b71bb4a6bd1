"""pod-garbage-collector-controller: pods that nobody else will delete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from awaiting import until_gone
from controllers_on_a_server import ControlledServer, controlled_server, running
from patience import PATIENCE
from prometheus_client import CollectorRegistry

from pilothouse.client.rest.options import ListOptions
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerConfig
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.machinery.objects import Json, name_of


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def manager(
    server: ControlledServer, registry: CollectorRegistry | None = None, threshold: int = 0
) -> ControllerManager:
    config = ControllerConfig(terminated_pod_gc_threshold=threshold, pod_gc_check_period=0.02, pod_gc_quarantine=0.05)
    return ControllerManager(server.client, enabled(["podgc"]), registry=registry or CollectorRegistry(), config=config)


def pods(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "pods", namespace="default")


async def pod(server: ControlledServer, name: str, *, node: str = "", phase: str = "", **meta: object) -> None:
    spec: Json = {"containers": [{"name": "c", "image": "i"}], "nodeName": node}
    await pods(server).create({"metadata": {"name": name, **meta}, "spec": spec})
    if phase:
        await pods(server).patch(name, {"status": {"phase": phase}}, subresource="status")


async def node(server: ControlledServer, name: str, **spec: object) -> None:
    await server.client.resource("v1", "nodes").create({"metadata": {"name": name}, "spec": spec})


async def last_state(server: ControlledServer, name: str, since: str) -> Json:
    options = ListOptions(field_selector=f"metadata.name={name}", resource_version=since, timeout_seconds=PATIENCE)
    async with await pods(server).watch(options) as watch:
        async for event in watch:
            if event.type == "DELETED":
                return event.object
    raise AssertionError(f"{name} is still there")


async def test_a_pod_of_a_deleted_node_is_failed_and_deleted(server: ControlledServer) -> None:
    await node(server, "here")
    await pod(server, "well", node="here")
    await pod(server, "orphan", node="gone", phase="Running")
    since = (await pods(server).list())["metadata"]["resourceVersion"]
    registry = CollectorRegistry()
    async with running(manager(server, registry)):
        last = await last_state(server, "orphan", since)
        await until_gone(pods(server), "orphan")
    assert last["status"]["phase"] == "Failed"
    (condition,) = (each for each in last["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert (condition["reason"], condition["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
    assert [name_of(each) for each in (await pods(server).list())["items"]] == ["well"]
    labels = {"namespace": "default", "reason": "orphaned"}
    assert (registry.get_sample_value("pod_gc_collector_force_delete_pods_total", labels) or 0) >= 1


async def test_terminated_pods_are_deleted_oldest_first_after_evicted_pods(server: ControlledServer) -> None:
    await node(server, "here")
    for name in ("a", "b", "c"):
        await pod(server, name, node="here", phase="Succeeded")
    await pod(server, "evicted", node="here")
    await pods(server).patch("evicted", {"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status")
    await pod(server, "runs", node="here", phase="Running")
    async with running(manager(server, threshold=2)):
        await asyncio.gather(*(until_gone(pods(server), name) for name in ("a", "evicted")))
    assert [name_of(each) for each in (await pods(server).list())["items"]] == ["b", "c", "runs"]


async def test_terminating_pods_go_when_their_node_is_out_of_service_or_they_have_none(
    server: ControlledServer,
) -> None:
    await node(server, "broken", taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}])
    await node(server, "slow")
    for name, where in (("stuck", "broken"), ("ending", "slow"), ("staying", "broken")):
        await pod(server, name, node=where, phase="Running")
    await pod(server, "unscheduled", finalizers=["example.com/hold"])
    for name in ("stuck", "ending", "unscheduled"):
        await pods(server).delete(name)
    async with running(manager(server)):
        await until_gone(pods(server), "stuck")
        await pods(server).patch("unscheduled", {"metadata": {"finalizers": None}})
        await until_gone(pods(server), "unscheduled")
    assert [name_of(each) for each in (await pods(server).list())["items"]] == ["ending", "staying"]

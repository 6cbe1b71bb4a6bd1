"""taint-eviction-controller: pods that do not tolerate the taints of their node. And the ttl-controller's note."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from awaiting import until, until_all
from controllers_on_a_server import ControlledServer, controlled_server, managed, running
from prometheus_client import CollectorRegistry

from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.manager import ControllerManager
from pilothouse.controllers.table import enabled
from pilothouse.controllers.tainteviction import tolerated_seconds
from pilothouse.controllers.ttl import TTL_ANNOTATION, ClusterSize
from pilothouse.kinds.conditions import find_condition
from pilothouse.machinery.objects import Json, annotations_of, metadata

TAINT: Json = {"key": "down", "value": "yes", "effect": "NoExecute"}


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield server


def pods(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "pods", namespace="default")


async def pod(server: ControlledServer, name: str, *tolerations: Json) -> None:
    spec: Json = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "tolerations": [*tolerations]}
    await pods(server).create({"metadata": {"name": name}, "spec": spec})
    await pods(server).patch(name, {"status": {"phase": "Running"}}, subresource="status")


async def taint(server: ControlledServer, *taints: Json) -> None:
    await server.client.resource("v1", "nodes").patch("n", {"spec": {"taints": [*taints]}})


def is_terminating(found: Json) -> bool:
    return bool(metadata(found).get("deletionTimestamp"))


async def until_told(server: ControlledServer, *messages: str) -> None:
    events = server.client.resource("v1", "events", namespace="default")
    found = await until_all(events, lambda items: {*messages} <= {each["message"] for each in items})
    assert {(each["reason"], each["source"]["component"]) for each in found} == {
        ("TaintManagerEviction", "taint-eviction-controller")
    }


async def test_pods_go_when_they_do_not_tolerate_the_taint_or_no_longer_do(server: ControlledServer) -> None:
    await server.client.resource("v1", "nodes").create({"metadata": {"name": "n"}})
    await pod(server, "at-once")
    await pod(server, "for-ever", {"key": "down", "operator": "Exists"})
    await pod(server, "a-while", {"key": "down", "operator": "Exists", "tolerationSeconds": 30, "effect": "NoExecute"})
    clock = FakeClock()
    manager = ControllerManager(
        server.client, enabled(["taint-eviction-controller"]), registry=CollectorRegistry(), clock=clock
    )
    async with running(manager):
        await taint(server, TAINT)
        gone = await until(pods(server), "at-once", is_terminating)
        target = find_condition(gone, "DisruptionTarget") or {}
        assert target["reason"] == "DeletionByTaintManager"
        assert target["message"] == "Taint manager: deleting due to NoExecute taint"
        await clock.wait_for_timer(30)
        clock.advance(20)
        await taint(server)
        await until_told(
            server, "Marking for deletion Pod default/at-once", "Cancelling deletion of Pod default/a-while"
        )
        await taint(server, TAINT)
        await clock.wait_for_timer(30)
        clock.advance(30)
        await until(pods(server), "a-while", is_terminating)
        await pod(server, "comes-late")
        await until(pods(server), "comes-late", is_terminating)
        assert not is_terminating(await pods(server).get("for-ever"))


async def test_nodes_say_how_long_objects_may_be_kept(server: ControlledServer) -> None:
    nodes = server.client.resource("v1", "nodes")
    await nodes.create({"metadata": {"name": "n", "annotations": {TTL_ANNOTATION: "15"}}})
    async with managed(server, "ttl"):
        await until(nodes, "n", lambda node: annotations_of(node)[TTL_ANNOTATION] == "0")


def test_the_larger_the_cluster_the_longer_objects_are_kept() -> None:
    size, seen = ClusterSize(), list[int]()
    for _ in range(2001):
        size.grow()
        seen.append(size.seconds)
    assert [seen[count - 1] for count in (100, 101, 501, 1001, 2000, 2001)] == [0, 15, 30, 60, 60, 300]
    for _ in range(2001 - 90):
        size.shrink()
    assert size.seconds == 15
    size.shrink()
    assert size.seconds == 0


def test_the_shortest_time_counts() -> None:
    short, long, ever = {"tolerationSeconds": 5}, {"tolerationSeconds": 9}, {"operator": "Exists"}
    assert tolerated_seconds([ever, long, short]) == 5
    assert tolerated_seconds([ever]) == math.inf
    assert tolerated_seconds([{"tolerationSeconds": -3}]) == 0

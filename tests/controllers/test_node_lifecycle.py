"""node-lifecycle-controller: nodes that are no longer heard, and what becomes of their taints and pods."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from awaiting import until, until_all
from controllers_on_a_server import ControlledServer, controlled_server, managed
from prometheus_client import CollectorRegistry

from pilothouse.client.clock import cancelled
from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.config import NodeLifecycleConfig
from pilothouse.controllers.nodelifecycle.health import NodeHealth, is_silent, observe
from pilothouse.controllers.nodelifecycle.metrics import NodeLifecycleMetrics
from pilothouse.controllers.nodelifecycle.tainter import missing_labels, no_schedule_changes
from pilothouse.controllers.nodelifecycle.zones import (
    Change,
    TaintQueue,
    ZoneHealth,
    Zones,
    ZoneState,
    eviction_rate,
    zone_health,
    zone_key,
)
from pilothouse.kinds.conditions import find_condition
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.times import format_micro_time, format_time

CONFIG = NodeLifecycleConfig()
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_beats = itertools.count()
QUICK = NodeLifecycleConfig(
    node_monitor_period=0.02, node_monitor_grace_period=0.6, node_startup_grace_period=0.1, node_eviction_rate=100.0
)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[ControlledServer]:
    async with controlled_server(tmp_path) as server:
        yield replace(server, config=replace(server.config, node_lifecycle=QUICK))


def nodes(server: ControlledServer) -> ResourceClient:
    return server.client.resource("v1", "nodes")


async def heard(server: ControlledServer, name: str, ready: str = "True", **conditions: str) -> None:
    """Play the kubelet. Each time is another second, by which heartbeats are told apart."""
    moment = format_time(NOW + timedelta(seconds=next(_beats)))
    said = [
        {"type": kind, "status": status, "lastHeartbeatTime": moment, "lastTransitionTime": moment}
        for kind, status in {"Ready": ready, **conditions}.items()
    ]
    await nodes(server).patch(name, {"status": {"conditions": said}}, subresource="status")


async def renew(server: ControlledServer, name: str) -> None:
    leases = server.client.resource("coordination.k8s.io/v1", "leases", namespace="kube-node-lease")
    far = format_micro_time(datetime.now(UTC))
    lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "renewTime": far}}
    await leases.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease}, field_manager="kubelet")


async def running_pod(server: ControlledServer, name: str, node: str) -> ResourceClient:
    pods = server.client.resource("v1", "pods", namespace="default")
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    await pods.create({"metadata": {"name": name}, "spec": spec})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    await pods.patch(name, {"status": {"phase": "Running", "conditions": [ready]}}, subresource="status")
    return pods


def taint_names(node: Json) -> set[str]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return {f"{each['key'].removeprefix('node.kubernetes.io/')}:{each['effect']}" for each in taints}


@asynccontextmanager
async def beating(server: ControlledServer, name: str) -> AsyncIterator[None]:
    """A kubelet that renews its node's lease."""

    async def beat() -> None:
        while True:
            await renew(server, name)
            await asyncio.sleep(QUICK.node_monitor_grace_period / 5)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        await cancelled(task)


async def test_a_silent_node_becomes_unknown_and_tainted_and_its_pods_are_not_ready(server: ControlledServer) -> None:
    for name in ("quiet", "alive"):
        await nodes(server).create({"metadata": {"name": name, "labels": {"kubernetes.io/os": "linux"}}})
        await heard(server, name, DiskPressure="False")
    assert taint_names(await nodes(server).get("quiet")) == {"not-ready:NoSchedule"}
    pods = await running_pod(server, "p", "quiet")
    async with beating(server, "alive"), managed(server, "nodelifecycle"):
        ready = await until(nodes(server), "quiet", lambda node: not taint_names(node) and len(labels_of(node)) == 2)
        assert labels_of(ready)["beta.kubernetes.io/os"] == "linux"
        quiet = await until(nodes(server), "quiet", lambda node: len(taint_names(node)) == 2)
        assert taint_names(quiet) == {"unreachable:NoSchedule", "unreachable:NoExecute"}
        said = {
            each["type"]: (each["status"], each["reason"], each["message"]) for each in quiet["status"]["conditions"]
        }
        stopped = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        never = ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
        assert said == {"Ready": stopped, "DiskPressure": stopped, "MemoryPressure": never, "PIDPressure": never}
        await until(pods, "p", lambda pod: (find_condition(pod, "Ready") or {})["status"] == "False")
        await running_pod(server, "late", "quiet")
        await until_events(server, {"RegisteredNode", "NodeNotReady"})
        assert taint_names(await nodes(server).get("alive")) == set()

        await heard(server, "quiet", "False", MemoryPressure="True")
        swapped = {"not-ready:NoSchedule", "memory-pressure:NoSchedule", "not-ready:NoExecute"}
        await until(nodes(server), "quiet", lambda node: taint_names(node) == swapped)
        await heard(server, "quiet", MemoryPressure="False")
        await until(nodes(server), "quiet", lambda node: not taint_names(node))
        await nodes(server).patch("quiet", {"spec": {"unschedulable": True}})
        await until(nodes(server), "quiet", lambda node: "unschedulable:NoSchedule" in taint_names(node))
        await nodes(server).delete("quiet")
        await until_events(server, {"RemovingNode"})


async def until_events(server: ControlledServer, reasons: set[str]) -> None:
    events = server.client.resource("v1", "events", namespace="default")
    found = await until_all(events, lambda items: reasons <= {each["reason"] for each in items})
    assert {each["source"]["component"] for each in found} == {"node-controller"}
    told = {each["reason"]: each["message"] for each in found if each["involvedObject"]["kind"] == "Node"}
    if "NodeNotReady" in reasons:
        assert told["NodeNotReady"] == "Node quiet status is now: NodeNotReady"
    if "RemovingNode" in reasons:
        assert told["RemovingNode"] == "Node quiet event: Removing Node quiet from Controller"


async def test_when_no_node_is_ready_none_is_emptied(server: ControlledServer) -> None:
    await nodes(server).create({"metadata": {"name": "only"}})
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    await nodes(server).patch("only", {"spec": {"taints": [taint]}})
    async with managed(server, "nodelifecycle"):
        unknown = await until(nodes(server), "only", lambda node: taint_names(node) == {"unreachable:NoSchedule"})
    assert (find_condition(unknown, "Ready") or {})["reason"] == "NodeStatusNeverUpdated"


JUMPS = [3600.0, -3600.0, 10 * 365 * 86400.0, -10 * 365 * 86400.0]


def condition(beat: str) -> Json:
    return {"type": "Ready", "status": "True", "lastHeartbeatTime": beat}


def node(ready: Json | None) -> Json:
    created = format_time(NOW - timedelta(hours=1))
    conditions = [] if ready is None else [ready]
    return {"metadata": {"name": "n", "creationTimestamp": created}, "status": {"conditions": conditions}}


def test_a_node_is_heard_by_its_status_or_its_lease() -> None:
    clock, renewed = FakeClock(NOW.timestamp()), NOW - timedelta(minutes=4)
    known, now = NodeHealth(-300.0, condition("a"), renewed), clock.now()
    lease = {"spec": {"renewTime": format_micro_time(renewed)}}
    newer = {"spec": {"renewTime": format_micro_time(NOW - timedelta(minutes=3))}}
    older = {"spec": {"renewTime": format_micro_time(NOW - timedelta(hours=3))}}
    assert observe(known, node(condition("a")), lease, clock).heard == -300.0
    assert observe(known, node(condition("b")), lease, clock).heard == now
    assert observe(known, node(None), lease, clock).heard == now
    assert observe(known, node(condition("a")), newer, clock).heard == now
    assert observe(known, node(condition("a")), older, clock).heard == now, "its clock was set back"
    assert observe(None, node(condition("a")), None, clock).heard == now
    assert observe(None, node(None), None, clock).heard == now - 3600


@pytest.mark.parametrize("seconds", JUMPS)
def test_a_wall_clock_that_jumps_makes_no_node_silent_nor_keeps_one_alive(seconds: float) -> None:
    clock = FakeClock(NOW.timestamp())
    health = observe(None, node(condition("a")), None, clock)
    clock.set_wall(clock.wall() + seconds)
    clock.advance(CONFIG.node_monitor_grace_period)
    health = observe(health, node(condition("a")), None, clock)
    assert not is_silent(health, CONFIG, clock.now())
    clock.advance(1)
    assert is_silent(observe(health, node(condition("a")), None, clock), CONFIG, clock.now())


@pytest.mark.parametrize(("ready", "seconds", "silent"), [(None, 59, False), (None, 61, True), ("a", 51, True)])
def test_a_node_that_starts_may_be_silent_for_longer(ready: str | None, seconds: int, silent: bool) -> None:
    assert is_silent(NodeHealth(-seconds, condition(ready) if ready else None), CONFIG, 0.0) is silent


@pytest.mark.parametrize(
    ("ready", "state"),
    [
        ([True, False, False], ZoneState.NORMAL),
        ([False], ZoneState.FULL_DISRUPTION),
        ([True, True, False, False, False], ZoneState.PARTIAL_DISRUPTION),
        ([True] * 3 + [False] * 3, ZoneState.NORMAL),
        ([], ZoneState.NORMAL),
    ],
)
def test_a_zone_is_as_its_nodes_are(ready: list[bool], state: ZoneState) -> None:
    assert zone_health(ready, CONFIG).state is state


def test_a_large_zone_that_is_unhealthy_is_emptied_slowly_and_a_small_one_not_at_all() -> None:
    partial = ZoneState.PARTIAL_DISRUPTION
    assert eviction_rate(ZoneHealth(51, 40, partial), CONFIG) == CONFIG.secondary_node_eviction_rate
    assert eviction_rate(ZoneHealth(50, 40, partial), CONFIG) == 0
    assert eviction_rate(ZoneHealth(50, 50, ZoneState.FULL_DISRUPTION), CONFIG) == CONFIG.node_eviction_rate


def test_zones_are_known_by_region_and_zone() -> None:
    labels = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}
    assert zone_key({"metadata": {"labels": labels}}) == "r:\0:a"
    assert zone_key({"metadata": {}}) == ""


async def test_nodes_are_handed_out_at_the_rate_of_their_zone() -> None:
    clock = FakeClock()
    queue, seen = TaintQueue(0.1, clock), list[str]()

    async def take(name: str) -> bool:
        seen.append(name)
        return True

    assert [queue.add(name) for name in ("a", "b", "a")] == [True, True, False]
    await queue.work(take)
    await queue.work(take)
    assert seen == ["a"]
    assert not queue.add("a")
    clock.advance(10)
    await queue.work(take)
    assert seen == ["a", "b"]
    assert not queue.has_waiting
    assert queue.remove("a")
    assert queue.add("a")
    queue.set_rate(0.0)
    clock.advance(100)
    await queue.work(take)
    queue.set_rate(1.0)
    await queue.work(take)
    assert seen == ["a", "b"]
    clock.advance(1)
    await queue.work(take)
    assert seen == ["a", "b", "a"]


def test_full_disruption_and_recovery_are_reported_once() -> None:
    zones = Zones(CONFIG, FakeClock())
    down, up = ZoneHealth(3, 3, ZoneState.FULL_DISRUPTION), ZoneHealth(3, 1, ZoneState.NORMAL)
    told = [zones.update(each)[1] for each in ({"a": up, "b": down}, {"a": down, "b": down}, {"a": down, "b": down})]
    assert told == [Change.NONE, Change.ALL_DOWN, Change.NONE]
    assert zones.update({"a": up}) == (["b"], Change.SOME_UP)
    metrics = NodeLifecycleMetrics(registry := CollectorRegistry())
    metrics.show("a", up)
    assert registry.get_sample_value("node_collector_zone_health", {"zone": "a"}) == pytest.approx(200 / 3)


def test_only_own_taints_are_taken_away() -> None:
    taints = [{"key": key, "effect": "NoSchedule"} for key in ("mine", "node.kubernetes.io/disk-pressure")]
    conditions = [{"type": "PIDPressure", "status": "True"}]
    tainted: Json = {"spec": {"taints": taints}, "status": {"conditions": conditions}}
    add, remove = no_schedule_changes(tainted)
    assert add == [("node.kubernetes.io/pid-pressure", "NoSchedule")]
    assert remove == [("node.kubernetes.io/disk-pressure", "NoSchedule")]


def test_deprecated_labels_follow_the_current_labels() -> None:
    labels = {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "windows", "beta.kubernetes.io/arch": "x"}
    assert missing_labels({"metadata": {"labels": labels}}) == {"beta.kubernetes.io/os": "linux"}

"""The scheduler of a whole server: pods get nodes, or are told why not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest_asyncio
from patience import PATIENCE
from whole_server import whole_server

from pilothouse.client import Client, Json, ListOptions, name_of

CONTAINER = {"name": "c", "image": "i"}


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with whole_server(tmp_path, scheduler=True, authorization_mode="RBAC") as server:
        yield server.client(in_process=True)


async def add_node(client: Client, name: str, cpu: str = "4", **spec: Any) -> None:
    node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": spec}
    nodes = client.resource("v1", "nodes")
    await nodes.create(node)
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"status": {"allocatable": allocatable, "capacity": allocatable}}
    await nodes.patch(name, status, subresource="status")
    # The server taints nodes that are not known to be ready.
    await nodes.patch(name, {"spec": {"taints": spec.get("taints")}})


async def add_pod(client: Client, name: str, cpu: str = "1", **spec: Any) -> None:
    container = {**CONTAINER, "resources": {"requests": {"cpu": cpu}}}
    pod = {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    await client.resource("v1", "pods", namespace="default").create(pod)


async def until(client: Client, resource: str, name: str, is_so: Callable[[Json], bool]) -> Json:
    """Return the object as soon as it is so."""
    selected = ListOptions(field_selector=f"metadata.name={name}", timeout_seconds=PATIENCE)
    async with await client.resource("v1", resource, namespace="default").watch(selected) as watch:
        async for event in watch:
            if is_so(event.object):
                return event.object
    raise AssertionError(f"{name} never was so")


async def until_bound(client: Client, name: str) -> str:
    pod = await until(client, "pods", name, lambda pod: bool(pod["spec"].get("nodeName")))
    node: str = pod["spec"]["nodeName"]
    return node


def scheduled(pod: Json) -> Json:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


async def event_about(client: Client, name: str, reason: str) -> Json:
    selected = ListOptions(field_selector=f"involvedObject.name={name},reason={reason}", timeout_seconds=PATIENCE)
    async with await client.resource("v1", "events", namespace="default").watch(selected) as watch:
        async for event in watch:
            return event.object
    raise AssertionError(f"no event {reason} about {name}")


async def test_a_pod_gets_a_node_and_an_event_says_so(client: Client) -> None:
    await add_node(client, "node-1")
    await add_pod(client, "web")
    assert await until_bound(client, "web") == "node-1"
    event = await event_about(client, "web", "Scheduled")
    assert event["message"] == "Successfully assigned default/web to node-1"
    assert event["reportingComponent"] == "default-scheduler"


async def test_a_pod_that_fits_nowhere_is_told_why_and_gets_the_node_that_comes_later(client: Client) -> None:
    await add_node(client, "small", cpu="1")
    await add_node(client, "tainted", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    await add_pod(client, "big", cpu="3")
    pod = await until(client, "pods", "big", lambda pod: "Insufficient" in scheduled(pod).get("message", ""))
    assert scheduled(pod)["status"] == "False"
    assert scheduled(pod)["reason"] == "Unschedulable"
    message = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate,"
        " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert scheduled(pod)["message"] == message
    assert (await event_about(client, "big", "FailedScheduling"))["message"]
    await add_node(client, "large", cpu="8")
    assert await until_bound(client, "big") == "large"


async def test_a_pod_of_greater_priority_takes_the_place_of_another(client: Client) -> None:
    await add_node(client, "node-1", cpu="2")
    classes = client.resource("scheduling.k8s.io/v1", "priorityclasses")
    await classes.create({"metadata": {"name": "high"}, "value": 1000})
    await add_pod(client, "victim", cpu="2")
    await until_bound(client, "victim")
    await add_pod(client, "preemptor", cpu="2", priorityClassName="high")
    going = await until(client, "pods", "victim", lambda pod: bool(pod["metadata"].get("deletionTimestamp")))
    target = next(each for each in going["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert target["reason"] == "PreemptionByScheduler"
    assert target["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    waiting = await until(client, "pods", "preemptor", lambda pod: bool(pod["status"].get("nominatedNodeName")))
    assert waiting["status"]["nominatedNodeName"] == "node-1"
    assert (await event_about(client, "victim", "Preempted"))["message"].startswith("Preempted by pod ")
    # As the kubelet does when the containers have ended.
    pods = client.resource("v1", "pods", namespace="default")
    await client.request("DELETE", pods.path("victim"), body={"gracePeriodSeconds": 0})
    assert await until_bound(client, "preemptor") == "node-1"


async def test_a_gated_pod_waits_until_its_last_gate_is_gone(client: Client) -> None:
    await add_node(client, "node-1")
    await add_pod(client, "gated", schedulingGates=[{"name": "example.com/ready"}])
    await add_pod(client, "other")
    await until_bound(client, "other")
    pods = client.resource("v1", "pods", namespace="default")
    gated = await pods.get("gated")
    assert not gated["spec"].get("nodeName")
    assert scheduled(gated)["reason"] == "SchedulingGated"
    await pods.patch("gated", {"spec": {"schedulingGates": None}})
    assert await until_bound(client, "gated") == "node-1"


async def test_a_pod_of_another_scheduler_is_left_alone(client: Client) -> None:
    await add_node(client, "node-1")
    await add_pod(client, "theirs", schedulerName="another")
    await add_pod(client, "ours")
    await until_bound(client, "ours")
    theirs = await client.resource("v1", "pods", namespace="default").get("theirs")
    assert name_of(theirs) == "theirs"
    assert not theirs["spec"].get("nodeName")
    assert not scheduled(theirs)


async def test_where_others_could_schedule_too_only_the_holder_of_the_lease_does(tmp_path: Path) -> None:
    async with whole_server(tmp_path, scheduler=True, leader_elect=True, authorization_mode="RBAC") as server:
        client = server.client(in_process=True)
        await add_node(client, "node-1")
        await add_pod(client, "web")
        assert await until_bound(client, "web") == "node-1"
        leases = client.resource("coordination.k8s.io/v1", "leases", namespace="kube-system")
        assert (await leases.get("kube-scheduler"))["spec"]["holderIdentity"]


async def test_a_server_that_does_not_schedule_leaves_it_to_others(tmp_path: Path) -> None:
    async with whole_server(tmp_path, scheduler=False, leader_elect=True) as server:
        client = server.client(in_process=True)
        await add_node(client, "node-1")
        await add_pod(client, "web")
        leases = client.resource("coordination.k8s.io/v1", "leases", namespace="kube-system")
        assert "kube-scheduler" not in {name_of(each) for each in (await leases.list())["items"]}
        assert not (await client.resource("v1", "pods", namespace="default").get("web"))["spec"].get("nodeName")


async def test_a_pod_that_somebody_else_bound_meanwhile_stays_where_it_is(client: Client) -> None:
    await add_node(client, "node-1", cpu="1")
    await add_pod(client, "web", cpu="2")
    await until(client, "pods", "web", lambda pod: scheduled(pod).get("reason") == "Unschedulable")
    pods = client.resource("v1", "pods", namespace="default")
    target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web"}, "target": {"name": "elsewhere"}}
    await pods.create(target, name="web", subresource="binding")
    await add_node(client, "node-2", cpu="8")
    await add_pod(client, "next", cpu="2")
    assert await until_bound(client, "next") == "node-2"
    assert (await pods.get("web"))["spec"]["nodeName"] == "elsewhere"

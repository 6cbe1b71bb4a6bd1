"""Simulated nodes on a whole server: ready nodes, pods that run, fail and end, and what they are told to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from awaiting import until, until_all, until_gone
from whole_server import whole_server

from pilothouse.client import Client, Json, PatchType, ResourceClient, name_of
from pilothouse.testing import API


@pytest_asyncio.fixture
async def api() -> AsyncIterator[API]:
    async with whole_server(simulated_nodes=2, simulation_delay="10ms") as api:
        yield api


def pods(api: API) -> ResourceClient:
    return client(api).resource("v1", "pods", namespace="default")


def client(api: API) -> Client:
    return api.client(in_process=True)


async def create(api: API, name: str, node: str = "node-1", annotations: Json | None = None, **spec: Any) -> None:
    containers = spec.pop("containers", [{"name": "app", "image": "nginx"}])
    metadata = {"name": name, "annotations": annotations or {}, "labels": {"app": name}}
    await pods(api).create({"metadata": metadata, "spec": {"nodeName": node, "containers": containers, **spec}})


def is_ready(obj: Json) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def phase(name: str) -> Any:
    return lambda pod: pod["status"]["phase"] == name


def reason(pod: Json) -> str:
    statuses = pod["status"].get("containerStatuses") or [{}]
    found: str = ((statuses[0].get("state") or {}).get("waiting") or {}).get("reason") or ""
    return found


async def test_nodes_are_ready_and_pods_run_until_they_are_deleted(api: API) -> None:
    nodes = client(api).resource("v1", "nodes")
    found = await until_all(nodes, lambda every: len(every) == 2 and all(map(is_ready, every)))
    assert {name_of(node) for node in found} == {"node-1", "node-2"}
    assert len({node["spec"]["podCIDR"] for node in found}) == 2
    assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in found} == {"zone-1", "zone-2"}
    await until(nodes, "node-1", lambda node: not node["spec"].get("taints"))
    await until(client(api).resource("coordination.k8s.io/v1", "leases", namespace="kube-node-lease"), "node-1")

    await create(api, "a")
    await create(api, "b", hostNetwork=True, node="node-2")
    first, second = await until(pods(api), "a", is_ready), await until(pods(api), "b", is_ready)
    assert first["status"]["podIP"].startswith("10.128.0.")
    assert second["status"]["podIP"] == second["status"]["hostIP"] != first["status"]["hostIP"]
    events = client(api).resource("v1", "events", namespace="default")
    await until_all(events, lambda every: {"Pulled", "Created", "Started"} <= {each["reason"] for each in every})
    await pods(api).delete("a")
    await until_gone(pods(api), "a")


async def test_what_goes_wrong_on_request(api: API) -> None:
    behaviors = client(api).resource("simulation.pilothouse.dev/v1alpha1", "simulatedbehaviors")
    await until(client(api).resource("v1", "nodes"), "node-1", is_ready)
    spec = {
        "selector": {"podSelector": {"matchLabels": {"app": "sick"}}},
        "container": {"failingProbes": ["readiness"]},
    }
    await behaviors.create(
        {
            "apiVersion": "simulation.pilothouse.dev/v1alpha1",
            "kind": "SimulatedBehavior",
            "metadata": {"name": "sick"},
            "spec": spec,
        }
    )
    await create(api, "image", annotations={"pilothouse.dev/image-pull-error": "no such image"})
    await create(api, "crash", annotations={"pilothouse.dev/exit-code": "3"})
    await create(api, "work", restartPolicy="Never", annotations={"pilothouse.dev/exit-after": "soon"})
    await create(api, "sick")
    env = [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]
    await create(api, "config", containers=[{"name": "app", "image": "nginx", "env": env}])
    await create(api, "volume", volumes=[{"name": "v", "secret": {"secretName": "s"}}])

    await until(pods(api), "image", lambda pod: reason(pod) == "ImagePullBackOff")
    await until(pods(api), "crash", lambda pod: reason(pod) == "CrashLoopBackOff")
    await until(pods(api), "work", phase("Succeeded"))
    events = client(api).resource("v1", "events", namespace="default")
    await until_all(events, lambda every: "InvalidBehavior" in {each["reason"] for each in every})
    await until(pods(api), "config", lambda pod: reason(pod) == "CreateContainerConfigError")
    await until(pods(api), "volume", lambda pod: reason(pod) == "ContainerCreating")
    assert not is_ready(await until(pods(api), "sick", phase("Running")))

    await behaviors.delete("sick")
    await until(pods(api), "sick", is_ready)
    for kind, name in (("configmaps", "c"), ("secrets", "s")):
        data = {"k": "dg=="}
        await client(api).resource("v1", kind, namespace="default").create({"metadata": {"name": name}, "data": data})
    await until(pods(api), "config", is_ready)
    await until(pods(api), "volume", is_ready)


async def test_a_port_of_a_node_is_had_by_one_pod_at_a_time(api: API) -> None:
    taken: Any = [{"name": "app", "image": "nginx", "ports": [{"containerPort": 80, "hostPort": 8080}]}]
    await until(client(api).resource("v1", "nodes"), "node-1", is_ready)
    await create(api, "first", containers=taken)
    await until(pods(api), "first", is_ready)
    await create(api, "second", containers=taken)
    await create(api, "elsewhere", node="node-2", containers=taken)
    refused = await until(pods(api), "second", phase("Failed"))
    assert refused["status"]["reason"] == "NodePorts"
    await until(pods(api), "elsewhere", is_ready)
    await pods(api).delete("first")
    await until_gone(pods(api), "first")
    await create(api, "third", containers=taken)
    await until(pods(api), "third", is_ready)


async def test_a_node_that_says_it_is_simulated_is_and_what_is_said_of_it_holds(api: API) -> None:
    nodes = client(api).resource("v1", "nodes")
    await until(nodes, "node-1", is_ready)
    annotations = {"pilothouse.dev/simulated": "true", "pilothouse.dev/cpu": "4"}
    await nodes.create({"metadata": {"name": "mine", "annotations": annotations}})
    mine = await until(nodes, "mine", is_ready)
    assert (mine["status"]["capacity"]["cpu"], mine["status"]["capacity"]["pods"]) == ("4", "110")
    await create(api, "a", "mine")
    await until(pods(api), "a", is_ready)
    broken = {"pilothouse.dev/behavior": '{"notReady": true, "diskPressure": true}'}
    await nodes.patch("mine", {"metadata": {"annotations": broken}})
    mine = await until(nodes, "mine", lambda node: not is_ready(node))
    assert next(each for each in mine["status"]["conditions"] if each["type"] == "DiskPressure")["status"] == "True"
    events = client(api).resource("v1", "events", namespace="default")
    await until_all(events, lambda every: {"NodeNotReady", "NodeHasDiskPressure"} <= {each["reason"] for each in every})
    await nodes.patch("mine", {"metadata": {"annotations": {"pilothouse.dev/behavior": '{"gone": true}'}}})
    await create(api, "c", "mine")
    await nodes.delete("mine")
    await create(api, "b")
    await until(pods(api), "b", is_ready)
    assert {name_of(node) for node in (await nodes.list())["items"]} == {"node-1", "node-2"}
    assert (await pods(api).get("c"))["status"]["phase"] == "Pending"
    await nodes.create({"metadata": {"name": "mine", "annotations": annotations}})
    await until(pods(api), "c", is_ready)


async def test_finalizers_resizes_and_ephemeral_containers_are_respected(api: API) -> None:
    await until(client(api).resource("v1", "nodes"), "node-1", is_ready)
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    await create(api, "a", containers=[{"name": "app", "image": "nginx", "resources": resources}])
    await until(pods(api), "a", is_ready)
    larger = {"requests": {"cpu": "150m"}, "limits": {"cpu": "200m"}}
    patch = {"spec": {"containers": [{"name": "app", "resources": larger}]}}
    await pods(api).patch("a", patch, PatchType.STRATEGIC, subresource="resize")
    await until(pods(api), "a", lambda pod: pod["status"]["containerStatuses"][0].get("resources") == larger)
    debugger = {"spec": {"ephemeralContainers": [{"name": "debugger", "image": "busybox"}]}}
    await pods(api).patch("a", debugger, PatchType.STRATEGIC, subresource="ephemeralcontainers")
    shown = "ephemeralContainerStatuses"
    await until(pods(api), "a", lambda pod: "running" in (pod["status"].get(shown) or [{"state": {}}])[0]["state"])
    await pods(api).patch("a", {"metadata": {"finalizers": ["example.com/wait"]}})
    await pods(api).delete("a")
    ended = await until(pods(api), "a", lambda pod: pod["metadata"].get("deletionGracePeriodSeconds") == 0)
    assert ended["status"]["phase"] == "Succeeded"
    await pods(api).patch("a", {"metadata": {"finalizers": None}})
    await until_gone(pods(api), "a")


async def test_pods_that_run_go_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    flags: dict[str, Any] = {"simulated_nodes": 1, "simulation_delay": "10ms"}
    async with whole_server(tmp_path / "data", **flags) as api:
        await until(client(api).resource("v1", "nodes"), "node-1", is_ready)
        await create(api, "a")
        before = await until(pods(api), "a", is_ready)
    async with whole_server(tmp_path / "data", **flags) as api:
        await create(api, "b")
        after = await until(pods(api), "b", is_ready)
        assert after["status"]["podIP"] != before["status"]["podIP"]
        assert (await pods(api).get("a"))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        await pods(api).delete("a")
        await until_gone(pods(api), "a")

"""Controllers and the scheduler behave as the chosen Kubernetes version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from patience import PATIENCE

from pilothouse.client import Json
from pilothouse.testing import API, server

pytestmark = pytest.mark.asyncio(loop_scope="module")

_CONTAINER = {"name": "c", "image": "i"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[API]:
    async with server(kubernetes_version="1.37", simulated_nodes=1) as running:
        yield running


async def _until(resource: Any, name: str, holds: Callable[[Json], bool]) -> Json:
    async with asyncio.timeout(PATIENCE):
        while True:
            obj: Json = await resource.get(name)
            if holds(obj):
                return obj
            await asyncio.sleep(0.05)


def _condition(obj: Json, kind: str) -> Json:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == kind), {})


async def test_bound_claims_report_since_1_37_whether_a_pod_uses_them(api: API) -> None:
    claims, pods = (
        api.client().resource("v1", name, namespace="default") for name in ("persistentvolumeclaims", "pods")
    )
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"}
    volumes = api.client().resource("v1", "persistentvolumes")
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/v"}}
    await volumes.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": volume})
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}}
    await claims.create(claim | {"spec": spec | {"storageClassName": ""}})
    unused = await _until(claims, "a", lambda obj: _condition(obj, "Unused").get("status") == "True")
    assert _condition(unused, "Unused")["reason"] == "NoPodsUsingPVC"
    pod_spec = {"containers": [_CONTAINER], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}}]}
    await pods.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": pod_spec})
    used = await _until(claims, "a", lambda obj: _condition(obj, "Unused").get("status") == "False")
    assert _condition(used, "Unused")["message"] == "A pod is currently referencing this PVC"


async def test_a_stateful_set_with_on_delete_completes_its_update_since_1_37(api: API) -> None:
    sets = api.client().resource("apps/v1", "statefulsets", namespace="default")
    pods = api.client().resource("v1", "pods", namespace="default")
    spec = {
        "serviceName": "s",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_CONTAINER]}},
    }
    created = await sets.create(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec}
    )
    await _until(sets, "s", lambda obj: obj["status"].get("readyReplicas") == 1)
    await sets.patch("s", {"spec": {"template": {"metadata": {"labels": {"a": "b", "new": "label"}}}}})
    assert created["spec"]["updateStrategy"] == {"type": "OnDelete"}

    def has_new_revision(obj: Json) -> bool:
        return bool(obj["status"]["updateRevision"] != obj["status"]["currentRevision"])

    await _until(sets, "s", has_new_revision)
    await pods.delete("s-0")
    await _until(sets, "s", lambda obj: not has_new_revision(obj) and obj["status"].get("updatedReplicas") == 1)


async def test_a_preempting_pod_says_since_1_37_where_room_is_made(api: API) -> None:
    classes = api.client().resource("scheduling.k8s.io/v1", "priorityclasses")
    await classes.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    )
    node = (await api.client().resource("v1", "nodes").list())["items"][0]
    cpus = int(node["status"]["allocatable"]["cpu"])
    pods = api.client().resource("v1", "pods", namespace="default")
    container = _CONTAINER | {"resources": {"requests": {"cpu": str(cpus - 1)}}}
    low = {"containers": [container], "terminationGracePeriodSeconds": 3600}
    await pods.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "low", "finalizers": ["a.b/c"]}, "spec": low}
    )
    await _until(pods, "low", lambda pod: bool(pod["spec"].get("nodeName")))
    high = {"containers": [container], "priorityClassName": "high"}
    await pods.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "high"}, "spec": high})
    name = node["metadata"]["name"]
    wanted = f"preemption: found a potential placement for pod on node {name}, preempting 1 victims"
    await _until(pods, "high", lambda pod: wanted in _condition(pod, "PodScheduled").get("message", ""))
    await pods.patch("low", {"metadata": {"finalizers": None}})

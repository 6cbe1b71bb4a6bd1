"""A kubelet that tests play: pods that run, become ready, fail and go when their status is written."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pilothouse.client import Client, DeleteOptions, Json, ResourceClient, name_of
from pilothouse.machinery.times import format_time

NOW_OR_BEFORE = "2026-01-01T00:00:00Z"
AT_ONCE = DeleteOptions(grace_period_seconds=0)


def pods_of(client: Client, namespace: str = "default") -> ResourceClient:
    return client.resource("v1", "pods", namespace=namespace)


def running(*, since: str = NOW_OR_BEFORE) -> Json:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    return {"phase": "Running", "conditions": [ready]}


def just_now() -> str:
    return format_time(datetime.now(UTC))


async def run_pods(pods: ResourceClient, names: Iterable[str], *, node: str = "n1", since: str = NOW_OR_BEFORE) -> None:
    """Put the pods on the node, if they are on none, and let them be ready there."""
    for name in names:
        if not (await pods.get(name))["spec"].get("nodeName"):
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
            await pods.create(binding, name=name, subresource="binding")
        await pods.patch(name, {"status": running(since=since)}, subresource="status")


async def set_phase(pods: ResourceClient, name: str, phase: str) -> None:
    await pods.patch(name, {"status": {"phase": phase}}, subresource="status")


async def finish_deletion(pods: ResourceClient) -> None:
    """Let all pods go that are being deleted."""
    for pod in (await pods.list())["items"]:
        if pod["metadata"].get("deletionTimestamp"):
            await pods.delete(name_of(pod), AT_ONCE)

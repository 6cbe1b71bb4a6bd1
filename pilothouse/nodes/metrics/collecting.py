"""Metrics of nodes and pods, computed on request."""

from __future__ import annotations

from typing import Protocol

from pilothouse.kinds.pods import node_name
from pilothouse.machinery import times
from pilothouse.machinery.event_loop import yield_periodically, yield_to_loop
from pilothouse.machinery.objects import Json, name_of
from pilothouse.nodes.behavior.model import ContainerBehavior
from pilothouse.nodes.kubelet.pods import KnownPods
from pilothouse.nodes.metrics.objects import node_metrics, pod_metrics
from pilothouse.nodes.metrics.usage import node_usage


class Measured(Protocol):
    """Source of nodes, pods and behaviours."""

    pods: KnownPods

    def nodes(self) -> list[Json]: ...

    def behavior(self, pod: Json, container: str) -> ContainerBehavior: ...


async def measure_nodes(of: Measured) -> list[Json]:
    now, made = _now(), list[Json]()
    for node in of.nodes():
        made.append(node_metrics(node, node_usage(of.pods.on_node(name_of(node)), of.behavior), now))
        await yield_to_loop()  # yield: a node may have many pods
    return made


async def measure_pods(of: Measured, namespace: str = "") -> list[Json]:
    """Return the metrics of pods with running containers on simulated nodes."""
    now = _now()
    nodes = {name_of(node) for node in of.nodes()}
    pods = (pod for pod in of.pods.all_in(namespace) if node_name(pod) in nodes)
    made = [pod_metrics(pod, of.behavior, now) async for pod in yield_periodically(pods)]
    return [each for each in made if each is not None]


async def measure_pod(of: Measured, namespace: str, name: str) -> list[Json]:
    """Return the metrics of one pod; empty if unavailable."""
    pod = of.pods.get(namespace, name)
    made = None if pod is None else pod_metrics(pod, of.behavior, _now())
    return [] if made is None else [made]


def _now() -> str:
    return times.now()

"""NodeMetrics and PodMetrics in metrics-server's form."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of
from pilothouse.machinery.quantity import Quantity
from pilothouse.machinery.quantity_notation import Format
from pilothouse.nodes.metrics.usage import BehaviorOf, Usage, pod_usage

GROUP_VERSION: Final = GroupVersion("metrics.k8s.io", "v1beta1")
NODE_METRICS: Final = GroupVersionKind(GROUP_VERSION.group, GROUP_VERSION.version, "NodeMetrics")
POD_METRICS: Final = GroupVersionKind(GROUP_VERSION.group, GROUP_VERSION.version, "PodMetrics")
_WINDOW: Final = "15s"
_NANO: Final = Decimal(1_000_000_000)


def node_metrics(node: Json, usage: Usage, now: str) -> Json:
    return {**_head(NODE_METRICS, node, now), "usage": _written(usage)}


def pod_metrics(pod: Json, behavior: BehaviorOf, now: str) -> Json | None:
    """Return the metrics of the pod; None without running containers."""
    used = pod_usage(pod, behavior)
    if not used:
        return None
    containers = [{"name": name, "usage": _written(usage)} for name, usage in used.items()]
    return {**_head(POD_METRICS, pod, now), "containers": containers}


def _head(kind: GroupVersionKind, of: Json, now: str) -> Json:
    metadata: Json = {"name": name_of(of)}
    if namespace_of(of):
        metadata["namespace"] = namespace_of(of)
    metadata["creationTimestamp"] = now
    if labels_of(of):
        metadata["labels"] = labels_of(of)
    return {
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": metadata,
        "timestamp": now,
        "window": _WINDOW,
    }


def _written(usage: Usage) -> Json:
    cpu = Quantity(int(usage.cpu * _NANO), -9)
    return {"cpu": str(cpu), "memory": str(Quantity(int(usage.memory), 0, Format.BINARY_SI))}

"""Container usage, from the behaviour or as a share of the requests, and its NodeMetrics and PodMetrics objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of, part
from pilothouse.machinery.quantity import Quantity, parse_quantity
from pilothouse.machinery.quantity_notation import Format
from pilothouse.machinery.times import parse_time
from pilothouse.nodes.behavior.model import ContainerBehavior

GROUP_VERSION: Final = GroupVersion("metrics.k8s.io", "v1beta1")
NODE_METRICS: Final = GroupVersionKind(GROUP_VERSION.group, GROUP_VERSION.version, "NodeMetrics")
POD_METRICS: Final = GroupVersionKind(GROUP_VERSION.group, GROUP_VERSION.version, "PodMetrics")
_WINDOW: Final = "15s"
_NANO: Final = Decimal(1_000_000_000)

BehaviorOf: TypeAlias = Callable[[Json, str], ContainerBehavior]
_SHARE: Final = "50%"
_GREATEST_SHARE: Final = 1_000_000
_GREATEST_POWER, _MOST_BITS = 18, 64
_CPU_WITHOUT_REQUEST, _MEMORY_WITHOUT_REQUEST = Decimal("0.001"), Decimal(8 * 1024 * 1024)
_NODE_OVERHEAD_CPU, _NODE_OVERHEAD_MEMORY = Decimal("0.05"), Decimal(512 * 1024 * 1024)


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


@dataclass(frozen=True, slots=True)
class Usage:
    cpu: Decimal
    """Cores."""
    memory: Decimal
    """Bytes."""


def pod_usage(pod: Json, behavior: BehaviorOf) -> dict[str, Usage]:
    """Return the usage of each running container."""
    spec = pod.get("spec") or {}
    specs = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    running = {spec["name"]: spec for spec in specs if started_at(pod, spec["name"]) is not None}
    return {name: _usage(value, behavior(pod, name)) for name, value in running.items()}


def node_usage(pods: Iterable[Json], behavior: BehaviorOf) -> Usage:
    """Return the usage of the node: its pods plus a constant overhead."""
    usages = [usage for pod in pods for usage in pod_usage(pod, behavior).values()]
    cpu = sum((usage.cpu for usage in usages), _NODE_OVERHEAD_CPU)
    return Usage(cpu, sum((usage.memory for usage in usages), _NODE_OVERHEAD_MEMORY))


def started_at(pod: Json, container: str) -> float | None:
    """Return the start of the running container in seconds since the epoch; None if not running."""
    status = pod.get("status") or {}
    for container_status in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        if container_status.get("name") == container:
            text = part(container_status, "state", "running").get("startedAt")
            moment = parse_time(text) if text else None
            return None if moment is None else moment.timestamp()
    return None


def _usage(spec: Json, behavior: ContainerBehavior) -> Usage:
    resources = spec.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Usage(
        _amount(behavior.cpu, requests.get("cpu"), _CPU_WITHOUT_REQUEST),
        _amount(behavior.memory, requests.get("memory"), _MEMORY_WITHOUT_REQUEST),
    )


def _amount(configured: str | None, requested: str | None, otherwise: Decimal) -> Decimal:
    """Return the configured quantity, or the configured share of the request."""
    text = configured or _SHARE
    if not text.endswith("%"):
        return _decimal(text, otherwise)
    try:
        share = Decimal(text[:-1]) / 100
    except ArithmeticError:
        return otherwise
    is_usable = requested is not None and share.is_finite() and 0 <= share <= _GREATEST_SHARE
    return _decimal(requested or "", otherwise) * share if is_usable else otherwise


def _decimal(text: str, otherwise: Decimal) -> Decimal:
    try:
        quantity = parse_quantity(text)
    except ValueError:
        return otherwise
    is_usable = abs(quantity.power) <= _GREATEST_POWER and quantity.digits.bit_length() <= _MOST_BITS
    return Decimal(quantity.digits).scaleb(quantity.power) if is_usable else otherwise

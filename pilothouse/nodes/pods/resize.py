"""In-place pod resize: applied at once if the node has the capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.quantity import Quantity, parse_quantity
from pilothouse.nodes.pods.pod_events import PodEvent
from pilothouse.nodes.pods.state import MAIN, SIDECAR, Container, containers_of

RESIZE_PENDING = "PodResizePending"
_RESIZABLE = ("cpu", "memory")
_LISTS = ("initContainerStatuses", "containerStatuses")


def is_resized(pod: Json) -> bool:
    """Return whether a container's resources differ from the stored status."""
    status: Json = pod.get("status") or {}
    if metadata(pod).get("generation") == status.get("observedGeneration") and not any(
        condition["type"] == RESIZE_PENDING for condition in status.get("conditions") or ()
    ):
        return False
    resources = {
        container_status["name"]: container_status.get("resources")
        for name in _LISTS
        for container_status in status.get(name) or ()
    }
    return any(
        resources.get(container.name) is not None and resources[container.name] != shown_resources(container.spec)
        for container in containers_of(pod)
    )


def requires_restart(pod: Json, container: Container, restarts: int) -> bool:
    """Return whether the change requires a restart that has not happened yet, judged by the stored restart count."""
    policies = {
        policy.get("resourceName"): policy.get("restartPolicy") for policy in container.spec.get("resizePolicy") or ()
    }
    stored = stored_status(pod, container.name)
    if "RestartContainer" not in policies.values() or stored is None or stored.get("restartCount") != restarts:
        return False
    old, new = stored.get("resources") or {}, shown_resources(container.spec)
    return any(
        policies.get(name) == "RestartContainer" and (old.get(part) or {}).get(name) != (new.get(part) or {}).get(name)
        for part in ("requests", "limits")
        for name in _RESIZABLE
    )


def shown_resources(spec: Json) -> Json:
    """Return the resources for the container status."""
    resources: Json = spec.get("resources") or {}
    return {name: value for name, value in resources.items() if name != "claims" and value}


def infeasible(pod: Json, allocatable: Mapping[str, str]) -> str:
    """Return why the node can never satisfy the pod; empty if it can."""
    for name in _RESIZABLE:
        total = parse_quantity("0")
        for container in containers_of(pod):
            if container.kind in (MAIN, SIDECAR):
                total += parse_quantity(
                    ((container.spec.get("resources") or {}).get("requests") or {}).get(name) or "0"
                )
        wanted, most = total, allocatable.get(name)
        if most is not None and wanted > parse_quantity(most):
            shown = _number(name, wanted), _number(name, parse_quantity(most))
            return f"Node didn't have enough capacity: {name}, requested: {shown[0]}, capacity: {shown[1]}"
    return ""


def resize_event(pod: Json, problem: str) -> Iterator[PodEvent]:
    """Yield a kubelet's events about a resize: infeasible, or started and completed."""
    if problem:
        yield PodEvent(WARNING, "ResizeInfeasible", f"Pod resize Infeasible: {_summary(pod, problem)}")
    else:
        yield PodEvent(NORMAL, "ResizeStarted", f"Pod resize started: {_summary(pod)}")
        yield PodEvent(NORMAL, "ResizeCompleted", f"Pod resize completed: {_summary(pod)}")


def stored_status(pod: Json, name: str) -> Json | None:
    """Return the stored status of the container, or None."""
    status: Json = pod.get("status") or {}
    return next(
        (
            container_status
            for kind in _LISTS
            for container_status in status.get(kind) or ()
            if container_status["name"] == name
        ),
        None,
    )


def _number(name: str, amount: Quantity) -> int:
    return amount.milli_value() if name == "cpu" else amount.value()


def _summary(pod: Json, error: str = "") -> str:
    spec: Json = pod.get("spec") or {}
    summary: Json = {}
    for field in ("initContainers", "containers"):
        if containers := spec.get(field):
            summary[field] = [
                {"name": container["name"], "resources": container.get("resources") or {}} for container in containers
            ]
    summary["generation"] = metadata(pod).get("generation")
    return orjson.dumps(summary | ({"error": error} if error else {})).decode()

"""Grouping of pods for metric comparison, and pod requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime

from pilothouse.controllers.podautoscaler.config import AutoscalerConfig
from pilothouse.controllers.podautoscaler.pod_metrics import MetricsUnavailable, PodMetric
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import phase_of, ready_condition, running_containers
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, part
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.times import optional_time


@dataclass(slots=True)
class PodGroups:
    ready: int = 0
    unready: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    """Pods without a metric."""
    ignored: set[str] = field(default_factory=set)
    """Terminating or failed pods."""


def group_pods(
    pods: Iterable[Json], metrics: Mapping[str, PodMetric], resource: str, config: AutoscalerConfig, now: datetime
) -> PodGroups:
    groups = PodGroups()
    for pod in pods:
        name, phase = name_of(pod), phase_of(pod)
        if is_deleting(pod) or phase == "Failed":
            groups.ignored.add(name)
        elif phase == "Pending":
            groups.unready.add(name)
        elif name not in metrics:
            groups.missing.add(name)
        elif resource == "cpu" and _is_starting(pod, metrics[name], config, now):
            groups.unready.add(name)
        else:
            groups.ready += 1
    return groups


def _is_starting(pod: Json, metric: PodMetric, config: AutoscalerConfig, now: datetime) -> bool:
    """Return whether the pod is starting; its usage then does not reflect load."""
    condition, began = ready_condition(pod), optional_time(pod["status"].get("startTime"))
    if not condition or began is None:
        return True
    unready, since = condition.get("status") == "False", optional_time(condition.get("lastTransitionTime"))
    if (now - began).total_seconds() < config.cpu_initialization_period:
        return unready or _began_before(metric, since)
    was_never_ready = since is None or (since - began).total_seconds() < config.initial_readiness_delay
    return unready and was_never_ready


def _began_before(metric: PodMetric, since: datetime | None) -> bool:
    """Return whether the measurement window begins before `since`."""
    if since is None:
        return False
    return metric.timestamp is None or (metric.timestamp - since).total_seconds() < metric.window


def requests_of(pods: Iterable[Json], resource: str, container: str = "") -> dict[str, int]:
    """Return milli-requests by pod name. Raises MetricsUnavailable if a pod has no request."""
    return {name_of(pod): _request(pod, resource, container) for pod in pods}


def _request(pod: Json, resource: str, container: str) -> int:
    of_pod = part(pod["spec"], "resources", "requests")
    if of_pod and not container:
        if resource not in of_pod:
            raise MetricsUnavailable(f"missing pod-level request for {resource} in Pod {name_of(pod)}")
        return parse_quantity(of_pod[resource]).milli_value()
    found = [
        _container_request(pod, each, resource)
        for each in running_containers(pod["spec"])
        if container in ("", each["name"])
    ]
    if container and not found:
        raise MetricsUnavailable(f"container {container} not found in Pod {name_of(pod)}")
    return sum(found)


def _container_request(pod: Json, container: Json, resource: str) -> int:
    amount = part(container, "resources", "requests").get(resource)
    if amount is None:
        where = f"container {container['name']} of Pod {name_of(pod)}"
        raise MetricsUnavailable(f"missing request for {resource} in {where}")
    return parse_quantity(str(amount)).milli_value()

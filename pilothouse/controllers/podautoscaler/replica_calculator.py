"""Replica calculation from usage and target.

    desired = ceil(pods × usage ÷ target)

applies if the ratio deviates from 1 by more than the tolerance. Pods without metrics dampen the change: they count as
full usage when scaling down, and as no usage when scaling up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import datetime

from pilothouse.controllers.config import AutoscalerConfig
from pilothouse.controllers.podautoscaler.pod_metrics import MetricsUnavailable, PodMetric
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import phase_of, ready_condition, running_containers
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, part
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.times import optional_time

MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, slots=True)
class Tolerances:
    down: float
    up: float

    def allow(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class Use:
    """Usage relative to the target. Values are in thousandths."""

    ratio: float
    average: int
    percent: int = 0
    """Percentage of the request."""


def utilization(values: Mapping[str, int], requests: Mapping[str, int], target: int) -> Use:
    """Return usage relative to a target percentage of requests. Raises MetricsUnavailable."""
    known = values.keys() & requests.keys()
    used, requested = sum(values[name] for name in known), sum(requests[name] for name in known)
    if not requested:
        raise MetricsUnavailable("no metrics returned matched known pods")
    percent = used * 100 // requested
    return Use(percent / target, used // len(known), percent)


def average_use(values: Mapping[str, int], target: int) -> Use:
    """Return usage relative to a target value per pod."""
    average = sum(values.values()) // len(values)
    return Use(average / target, average)


def replicas_for_pods(
    current: int,
    values: Mapping[str, int],
    groups: PodGroups,
    *,
    measure: Callable[[Mapping[str, int]], Use],
    should_use: Callable[[str], int],
    tolerances: Tolerances,
) -> tuple[int, Use]:
    """Return the replicas and the usage of the counted pods. `should_use` returns the target usage of a pod.

    Raises MetricsUnavailable.
    """
    apart = groups.ignored | groups.unready
    counted = {name: value for name, value in values.items() if name not in apart}
    if not counted:
        raise MetricsUnavailable("did not receive metrics for targeted pods (pods might be unready)")
    use = measure(counted)
    unready = groups.unready if use.ratio > 1.0 else set()
    if not unready and not groups.missing:
        return (current if tolerances.allow(use.ratio) else _ceil(use.ratio * groups.ready)), use
    if use.ratio < 1.0:
        counted |= {name: should_use(name) for name in groups.missing}
    elif use.ratio > 1.0:
        counted |= dict.fromkeys(groups.missing | unready, 0)
    return _replicas_after_all(current, len(counted), use.ratio, measure(counted).ratio, tolerances), use


def replicas_for_total(current: int, used: int, target: int, ready: Callable[[], int], tolerances: Tolerances) -> int:
    """Return the replicas for a metric shared by all pods."""
    ratio = used / target
    if current == 0:
        return _ceil(ratio)
    return current if tolerances.allow(ratio) else _ceil(ratio * ready())


def replicas_for_share(current: int, used: int, target: int, tolerances: Tolerances) -> tuple[int, int]:
    """Return (replicas, average per pod) for a metric with a target value per pod."""
    ratio = used / (target * current) if current else math.inf
    replicas = current if tolerances.allow(ratio) else _ceil(used / target)
    if used >= MAX_INT64 or not current:
        return replicas, MAX_INT64 if used else 0
    return replicas, math.ceil(used / current)


def total(values: Iterable[int]) -> int:
    return min(sum(values), MAX_INT64)


def _replicas_after_all(current: int, pods: int, before: float, ratio: float, tolerances: Tolerances) -> int:
    """Return the replicas after assumptions for missing pods; assumptions never reverse or trigger a change."""
    if tolerances.allow(ratio) or before < 1.0 < ratio or ratio < 1.0 < before:
        return current
    replicas = _ceil(ratio * pods)
    if (ratio < 1.0 and replicas > current) or (ratio > 1.0 and replicas < current):
        return current
    return replicas


def _ceil(replicas: float) -> int:
    return min(math.ceil(min(replicas, float(MAX_INT32))), MAX_INT32)


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
    requests = [
        _container_request(pod, candidate, resource)
        for candidate in running_containers(pod["spec"])
        if container in ("", candidate["name"])
    ]
    if container and not requests:
        raise MetricsUnavailable(f"container {container} not found in Pod {name_of(pod)}")
    return sum(requests)


def _container_request(pod: Json, container: Json, resource: str) -> int:
    amount = part(container, "resources", "requests").get(resource)
    if amount is None:
        where = f"container {container['name']} of Pod {name_of(pod)}"
        raise MetricsUnavailable(f"missing request for {resource} in {where}")
    return parse_quantity(str(amount)).milli_value()

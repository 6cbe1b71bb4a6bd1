"""Quota evaluator of pods: resources until the pod ends, and the object count until deletion."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.kinds.pods import has_ended, is_sidecar
from pilothouse.kinds.resources import ResourceList, added, aggregate_limits, aggregate_requests, read_resources
from pilothouse.kube.admission.quota.evaluators import ONE, in_values
from pilothouse.kube.core.pods.qos import qos_class
from pilothouse.kube.validation import quota_scopes as scopes
from pilothouse.kube.validation.resource_names import (
    is_extended,
    is_huge_page,
    is_native,
    is_pod_level,
    is_quota_huge_page,
)
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import seconds
from pilothouse.machinery.objects import Json, items, metadata, part, text
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.times import Clock, parse_time, system_clock

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_NAMES = frozenset(
    {"count/pods", "pods", *_COMPUTE, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE)}
)
_EACH_CONTAINER_MUST_SAY = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
_DEVICE_CLASSES = "deviceclass.resource.kubernetes.io/"
"""Prefix of the implicit extended resource name of a device class."""
_AFFINITIES = ("podAffinity", "podAntiAffinity")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class PodEvaluator:
    counts_only = False

    clock: Clock = system_clock

    def handles(self, attributes: Attributes) -> bool:
        if attributes.subresource:
            return attributes.subresource == "resize" and attributes.operation is Operation.UPDATE
        if attributes.operation is Operation.UPDATE:
            return _is_terminating(attributes.obj or {}) != _is_terminating(attributes.old or {})
        return attributes.operation is Operation.CREATE

    def matching(self, names: Iterable[str]) -> list[str]:
        return sorted(
            name
            for name in names
            if name in _NAMES
            or is_quota_huge_page(name)
            or (
                name.startswith("requests.") and (not is_native(name) or name.startswith("requests." + _DEVICE_CLASSES))
            )
        )

    def in_scope(self, scope: Json, obj: Json) -> bool:
        name = text(scope, "scopeName")
        if name in (scopes.TERMINATING, scopes.NOT_TERMINATING):
            return _is_terminating(obj) == (name == scopes.TERMINATING)
        if name in (scopes.BEST_EFFORT, scopes.NOT_BEST_EFFORT):
            return (qos_class(obj) == "BestEffort") == (name == scopes.BEST_EFFORT)
        if name == scopes.PRIORITY_CLASS:
            return in_values(scope, text(obj, "spec", "priorityClassName") or None)
        return name == scopes.CROSS_NAMESPACE_POD_AFFINITY and _reaches_other_namespaces(obj)

    def missing(self, names: Iterable[str], obj: Json) -> str:
        if any(is_pod_level(name) for kind in ("requests", "limits") for name in part(obj, "spec", "resources", kind)):
            return ""
        wanted = sorted(_EACH_CONTAINER_MUST_SAY.intersection(names))
        parts = [f"{name} for: {','.join(who)}" for name in wanted if (who := _silent_containers(obj, name))]
        return f"must specify {'; '.join(parts)}" if parts else ""

    def usage(self, obj: Json) -> ResourceList:
        counted: ResourceList = {"count/pods": ONE}
        if self._has_ended(obj):
            return counted
        spec = _effective_spec(obj)
        requests = pod_requests(spec)
        limits = _limits(spec)
        used: ResourceList = {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}
        for name, amount in requests.items():
            if name in _COMPUTE or is_huge_page(name):
                used |= {name: amount, f"requests.{name}": amount}
            elif is_extended(name) or name.startswith(_DEVICE_CLASSES):
                used[f"requests.{name}"] = amount
        return added(counted, {"pods": ONE} | used)

    def _has_ended(self, pod: Json) -> bool:
        if has_ended(pod):
            return True
        deleted, grace = metadata(pod).get("deletionTimestamp"), metadata(pod).get("deletionGracePeriodSeconds")
        if not deleted or grace is None:
            return False
        moment = parse_time(deleted)
        return moment is not None and self.clock() > moment + seconds(grace)


def _is_terminating(pod: Json) -> bool:
    seconds = part(pod, "spec").get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def pod_requests(spec: Json) -> ResourceList:
    return added(aggregate_requests(spec) | _pod_level(spec, "requests"), _overhead(spec))


def _limits(spec: Json) -> ResourceList:
    limits = aggregate_limits(spec) | _pod_level(spec, "limits")
    return added(limits, {name: amount for name, amount in _overhead(spec).items() if name in limits})


def _pod_level(spec: Json, kind: str) -> ResourceList:
    return {name: amount for name, amount in read_resources(spec, kind).items() if is_pod_level(name)}


def _overhead(spec: Json) -> ResourceList:
    return {name: parse_quantity(amount) for name, amount in part(spec, "overhead").items()}


def _silent_containers(pod: Json, name: str) -> list[str]:
    kind, _, resource = name.rpartition(".")
    containers = [*items(pod, "spec", "containers"), *items(pod, "spec", "initContainers")]
    return sorted(
        {
            text(container, "name")
            for container in containers
            if resource not in part(container, "resources", kind or "requests")
        }
    )


def _reaches_other_namespaces(pod: Json) -> bool:
    for name in _AFFINITIES:
        affinity = part(pod, "spec", "affinity", name)
        terms = [*items(affinity, _REQUIRED), *(part(item, "podAffinityTerm") for item in items(affinity, _PREFERRED))]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def _effective_spec(pod: Json) -> Json:
    """Return the spec with effective resources: during a resize, the maximum of desired, allocated and actual."""
    spec, statuses = part(pod, "spec"), _statuses(pod)
    if not statuses:
        return spec
    pending = (
        condition for condition in items(pod, "status", "conditions") if condition.get("type") == "PodResizePending"
    )
    infeasible = text(next(pending, {}), "reason") == "Infeasible"
    containers = [_effective(container, statuses, infeasible) for container in items(spec, "containers")]
    init = [
        _effective(container, statuses, infeasible) if is_sidecar(container) else container
        for container in items(spec, "initContainers")
    ]
    return spec | {"containers": containers, "initContainers": init}


def _statuses(pod: Json) -> dict[str, Json]:
    """Return container statuses with known resources, by name."""
    result = [*items(pod, "status", "containerStatuses"), *items(pod, "status", "initContainerStatuses")]
    return {text(item, "name"): item for item in result if item.get("resources") is not None}


def _effective(container: Json, statuses: dict[str, Json], infeasible: bool) -> Json:
    status = statuses.get(text(container, "name"))
    if status is None:
        return container
    wanted = {} if infeasible else part(container, "resources")
    actuated, allocated = part(status, "resources"), part(status, "allocatedResources")
    resources = {
        "requests": _greatest(part(wanted, "requests"), part(actuated, "requests"), allocated),
        "limits": _greatest(part(wanted, "limits"), part(actuated, "limits")),
    }
    return container | {"resources": resources}


def _greatest(*lists: Json) -> dict[str, str]:
    names: Iterable[str] = {name for item in lists for name in item}
    return {name: max((item[name] for item in lists if name in item), key=parse_quantity) for name in names}

"""LimitRanger: applies the defaults of limit ranges to pods, and enforces their bounds on pods and claims."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.resources import ResourceList, aggregate_limits, aggregate_requests, read_resources
from pilothouse.kube.admission.pods import PODS
from pilothouse.kube.core.limitranges import CLAIM, CONTAINER, POD
from pilothouse.kube.validation.resource_names import is_pod_level
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items, metadata, part
from pilothouse.machinery.quantity import ZERO, Quantity, parse_quantity
from pilothouse.machinery.status_error import aggregate

ListInNamespace: TypeAlias = Callable[[str], Awaitable[list[Json]]]

_CLAIMS = GroupResource("", "persistentvolumeclaims")
ANNOTATION = "kubernetes.io/limit-ranger"

_MAX_MILLI_VALUE = (2**63 - 1) // 1000


class LimitRanger(Handler):
    name = "LimitRanger"
    resources = (PODS, _CLAIMS)
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, limit_ranges: ListInNamespace) -> None:
        self._limit_ranges = limit_ranges

    async def admit(self, attributes: Attributes) -> None:
        if attributes.obj is None or attributes.kind.kind != "Pod" or not _concerns(attributes):
            return
        for limit_range in await self._limit_ranges(attributes.namespace):
            limits, requests = _defaults(limit_range, "default"), _defaults(limit_range, "defaultRequest")
            changes: list[str] = []
            for field, label in (("containers", "container"), ("initContainers", "init container")):
                for container in items(attributes.obj, "spec", field):
                    called = f"{label} {container.get('name') or ''}"
                    resources = container.setdefault("resources", {})
                    set_limits = _fill(resources, "limits", limits)
                    set_requests = _fill(resources, "requests", requests)
                    changes += [f"{', '.join(set_requests)} request for {called}"] if set_requests else []
                    changes += [f"{', '.join(set_limits)} limit for {called}"] if set_limits else []
            if changes:
                meta = metadata(attributes.obj)
                message = "LimitRanger plugin set: " + "; ".join(changes)
                meta["annotations"] = (meta.get("annotations") or {}) | {ANNOTATION: message}

    async def validate(self, attributes: Attributes) -> None:
        if attributes.obj is None or not _concerns(attributes):
            return
        check = _pod_complaints if attributes.kind.kind == "Pod" else _claim_complaints
        for limit_range in await self._limit_ranges(attributes.namespace):
            result = list(check(attributes.obj, limit_range))
            if result:
                raise refused(attributes, aggregate(result))


def _concerns(attributes: Attributes) -> bool:
    """Report whether the write creates a pod or claim, or resizes a pod. Objects being deleted are exempt."""
    if attributes.kind.group or attributes.kind.kind not in ("Pod", "PersistentVolumeClaim"):
        return False
    if attributes.old is not None and is_deleting(attributes.old):
        return False
    if attributes.kind.kind == "Pod" and attributes.operation is Operation.UPDATE:
        return attributes.subresource == "resize"
    return not attributes.subresource


def _defaults(limit_range: Json, field: str) -> dict[str, str]:
    result: dict[str, str] = {}
    for limit in items(limit_range, "spec", "limits"):
        if limit.get("type") == CONTAINER:
            result |= part(limit, field)
    return result


def _fill(resources: Json, field: str, defaults: dict[str, str]) -> list[str]:
    """Fill in missing amounts. Return their resource names, sorted."""
    existing = resources.get(field) or {}
    missing = sorted(defaults.keys() - existing.keys())
    if missing:
        resources[field] = existing | {name: defaults[name] for name in missing}
    return missing


def _pod_complaints(pod: Json, limit_range: Json) -> Iterator[str]:
    spec = part(pod, "spec")
    for limit in items(limit_range, "spec", "limits"):
        if limit.get("type") == CONTAINER:
            for container in [*items(spec, "containers"), *items(spec, "initContainers")]:
                asked = Asked(read_resources(container, "requests"), read_resources(container, "limits"))
                yield from complaints(limit, asked)
        elif limit.get("type") == POD:
            yield from complaints(
                limit,
                Asked(
                    aggregate_requests(spec) | _pod_level(spec, "requests"),
                    aggregate_limits(spec) | _pod_level(spec, "limits"),
                ),
            )


def _pod_level(spec: Json, field: str) -> ResourceList:
    """Return the pod-level resources, which replace the sum over containers."""
    return {name: amount for name, amount in read_resources(spec, field).items() if is_pod_level(name)}


def _claim_complaints(claim: Json, limit_range: Json) -> Iterator[str]:
    asked = Asked(read_resources(part(claim, "spec"), "requests"), {})
    for limit in items(limit_range, "spec", "limits"):
        if limit.get("type") == CLAIM:
            yield from claim_complaints(limit, asked)


@dataclass(frozen=True, slots=True)
class Asked:
    requests: ResourceList
    limits: ResourceList


def complaints(limit: Json, asked: Asked) -> Iterator[str]:
    """Yield violations of the limit, in upstream's order: minima, maxima, ratios."""
    kind = limit.get("type") or ""
    rules: tuple[tuple[str, Callable[[str, str, Quantity, Asked], str]], ...] = (
        ("min", _below_minimum),
        ("max", _above_maximum),
        ("maxLimitRequestRatio", _above_ratio),
    )
    for field, rule in rules:
        for name, amount in sorted(part(limit, field).items()):
            if complaint := rule(kind, name, parse_quantity(amount), asked):
                yield complaint


def claim_complaints(limit: Json, asked: Asked) -> Iterator[str]:
    """Yield violations of the limit by a claim. Claims have requests only."""
    kind = limit.get("type") or ""
    for name, amount in sorted(part(limit, "min").items()):
        if complaint := _below_minimum(kind, name, parse_quantity(amount), asked):
            yield complaint
    for name, text in sorted(part(limit, "max").items()):
        most, request = parse_quantity(text), asked.requests.get(name)
        limit_text = f"maximum {name} usage per {kind} is {most}"
        if request is None:
            yield f"{limit_text}.  No request is specified"
        elif request > most:
            yield f"{limit_text}, but request is {request}"


def _below_minimum(kind: str, name: str, least: Quantity, asked: Asked) -> str:
    request, limit = asked.requests.get(name), asked.limits.get(name)
    limit_text = f"minimum {name} usage per {kind} is {least}"
    if request is None:
        return f"{limit_text}.  No request is specified"
    if request < least:
        return f"{limit_text}, but request is {request}"
    return f"{limit_text}, but limit is {limit}" if limit is not None and limit < least else ""


def _above_maximum(kind: str, name: str, most: Quantity, asked: Asked) -> str:
    request, limit = asked.requests.get(name), asked.limits.get(name)
    limit_text = f"maximum {name} usage per {kind} is {most}"
    if limit is None:
        return f"{limit_text}.  No limit is specified"
    if limit > most:
        return f"{limit_text}, but limit is {limit}"
    return f"{limit_text}, but request is {request}" if request is not None and request > most else ""


def _above_ratio(kind: str, name: str, most: Quantity, asked: Asked) -> str:
    request, limit = asked.requests.get(name, ZERO), asked.limits.get(name, ZERO)
    limit_text = f"{name} max limit to request ratio per {kind} is {most}"
    if not request:
        return f"{limit_text}, but no request is specified or request is 0"
    if not limit:
        return f"{limit_text}, but no limit is specified or limit is 0"
    exact = all(item.value() <= _MAX_MILLI_VALUE for item in (request, limit, most))
    ratio = limit.milli_value() / request.milli_value() if exact else limit.value() / request.value()
    return f"{limit_text}, but provided ratio is {ratio:f}" if ratio > float(most) else ""

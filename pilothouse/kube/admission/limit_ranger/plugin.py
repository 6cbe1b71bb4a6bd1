"""LimitRanger: pods get the defaults of the limit ranges in their namespace; they and claims stay inside the bounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pod_resources import aggregate_limits, aggregate_requests, read_resources
from pilothouse.kinds.resource_lists import ResourceList
from pilothouse.kube.admission.limit_ranger.constraints import Asked, claim_complaints, complaints
from pilothouse.kube.admission.pods import PODS
from pilothouse.kube.core.limitranges import CLAIM, CONTAINER, POD
from pilothouse.kube.core.pods.defaults.resources import is_pod_level
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, items, metadata, part
from pilothouse.machinery.status_error import aggregate

ListInNamespace: TypeAlias = Callable[[str], Awaitable[list[Json]]]

_CLAIMS = GroupResource("", "persistentvolumeclaims")
ANNOTATION = "kubernetes.io/limit-ranger"


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
            _give_defaults(attributes.obj, limit_range)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.obj is None or not _concerns(attributes):
            return
        check = _pod_complaints if attributes.kind.kind == "Pod" else _claim_complaints
        for limit_range in await self._limit_ranges(attributes.namespace):
            found = list(check(attributes.obj, limit_range))
            if found:
                raise refused(attributes, aggregate(found))


def _concerns(attributes: Attributes) -> bool:
    """New pods, resized pods, and claims; never what is on its way out."""
    if attributes.kind.group or attributes.kind.kind not in ("Pod", "PersistentVolumeClaim"):
        return False
    if attributes.old is not None and is_deleting(attributes.old):
        return False
    if attributes.kind.kind == "Pod" and attributes.operation is Operation.UPDATE:
        return attributes.subresource == "resize"
    return not attributes.subresource


def _give_defaults(pod: Json, limit_range: Json) -> None:
    limits, requests = _defaults(limit_range, "default"), _defaults(limit_range, "defaultRequest")
    said: list[str] = []
    for field, shown in (("containers", "container"), ("initContainers", "init container")):
        for container in items(pod, "spec", field):
            called = f"{shown} {container.get('name') or ''}"
            resources = container.setdefault("resources", {})
            set_limits = _fill(resources, "limits", limits)
            set_requests = _fill(resources, "requests", requests)
            said += [f"{', '.join(set_requests)} request for {called}"] if set_requests else []
            said += [f"{', '.join(set_limits)} limit for {called}"] if set_limits else []
    if said:
        annotations = metadata(pod).get("annotations") or {}
        metadata(pod)["annotations"] = annotations | {ANNOTATION: "LimitRanger plugin set: " + "; ".join(said)}


def _defaults(limit_range: Json, field: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for limit in items(limit_range, "spec", "limits"):
        if limit.get("type") == CONTAINER:
            found |= part(limit, field)
    return found


def _fill(resources: Json, field: str, defaults: dict[str, str]) -> list[str]:
    """The names that were missing, sorted."""
    given = resources.get(field) or {}
    missing = sorted(defaults.keys() - given.keys())
    if missing:
        resources[field] = given | {name: defaults[name] for name in missing}
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
    """Return the resources that the pod asks for as a whole, in place of its containers."""
    return {name: amount for name, amount in read_resources(spec, field).items() if is_pod_level(name)}


def _claim_complaints(claim: Json, limit_range: Json) -> Iterator[str]:
    asked = Asked(read_resources(part(claim, "spec"), "requests"), {})
    for limit in items(limit_range, "spec", "limits"):
        if limit.get("type") == CLAIM:
            yield from claim_complaints(limit, asked)

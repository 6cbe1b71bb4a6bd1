"""What containers hold while they are resized: the greatest of what is wanted, promised and in effect."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.kube.core.pods.resource_totals import is_sidecar
from pilothouse.machinery.nested_fields import items, part, text
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity


def effective_spec(pod: Json) -> Json:
    """The pod's spec with the resources that its containers hold."""
    spec, statuses = part(pod, "spec"), _statuses(pod)
    if not statuses:
        return spec
    infeasible = _is_infeasible(pod)
    containers = [_effective(each, statuses, infeasible) for each in items(spec, "containers")]
    init = [
        _effective(each, statuses, infeasible) if is_sidecar(each) else each for each in items(spec, "initContainers")
    ]
    return spec | {"containers": containers, "initContainers": init}


def _statuses(pod: Json) -> dict[str, Json]:
    """Of those containers of which it is known what is in effect."""
    found = [*items(pod, "status", "containerStatuses"), *items(pod, "status", "initContainerStatuses")]
    return {text(each, "name"): each for each in found if each.get("resources") is not None}


def _is_infeasible(pod: Json) -> bool:
    """A resize that the node has refused for good is not counted."""
    pending = (each for each in items(pod, "status", "conditions") if each.get("type") == "PodResizePending")
    return text(next(pending, {}), "reason") == "Infeasible"


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
    names: Iterable[str] = {name for each in lists for name in each}
    return {name: max((each[name] for each in lists if name in each), key=parse_quantity) for name in names}

"""Resources of the pod as a whole: enough for its containers together, and not less than any one may take."""

from __future__ import annotations

from pilothouse.kinds.pod_resources import aggregate_limits, aggregate_requests, read_resources
from pilothouse.kube.core.pods.validation.container import PodContext
from pilothouse.kube.core.pods.validation.container_resources import validate_pod_resources
from pilothouse.kube.validation.resource_names import is_huge_page
from pilothouse.machinery.field import Errors, Path, forbidden, invalid
from pilothouse.machinery.objects import Json


def validate_pod_level_resources(spec: Json, path: Path, pod: PodContext) -> Errors:
    resources = spec["resources"]
    if pod.os_name == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield forbidden(path.child("claims"), "claims may not be set for Resources at pod-level")
    yield from validate_pod_resources(resources, path, pod.claim_names, pod.options)
    requests, limits = read_resources(spec, "requests"), read_resources(spec, "limits")
    for name, total in sorted(aggregate_requests(spec).items()):
        if name in requests and total > requests[name]:
            why = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid(path.child("requests").key(name), str(requests[name]), why)
    for name, total in sorted(aggregate_limits(spec).items()):
        if is_huge_page(name) and name in limits and total > limits[name]:
            why = f"must be greater than or equal to aggregate container limits of {total}"
            yield invalid(path.child("limits").key(name), str(limits[name]), why)
    yield from _validate_container_limits(spec, path)


def _validate_container_limits(spec: Json, path: Path) -> Errors:
    limits = read_resources(spec, "limits")
    for position, container in enumerate(spec.get("containers") or ()):
        for name, amount in sorted(read_resources(container, "limits").items()):
            if name in limits and amount > limits[name]:
                at = path.child("containers").index(position).key(name).child("limits")
                why = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid(at, str(amount), why)

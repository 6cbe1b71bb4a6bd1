"""The parts of pods that scheduling looks at. Of all the rest nothing is kept: there may be very many pods."""

from __future__ import annotations

from pilothouse.machinery.objects import Json

NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
"""The pods that take something from their nodes, or will."""

_OF_METADATA = (
    *("name", "namespace", "uid", "resourceVersion", "generation", "labels", "ownerReferences"),
    *("creationTimestamp", "deletionTimestamp"),
)
_OF_CONTAINER = ("name", "image", "resources", "ports", "restartPolicy")
_OF_STATUS = ("phase", "conditions", "nominatedNodeName", "startTime", "resourceClaimStatuses")
_OF_CONTAINER_STATUS = ("name", "resources", "allocatedResources")
_CONTAINERS, _CONTAINER_STATUSES = ("containers", "initContainers"), ("containerStatuses", "initContainerStatuses")


def reduced(pod: Json) -> Json:
    """Return the pod without what nobody here asks for; again, the same."""
    spec, status = pod["spec"], pod.get("status") or {}
    containers = {kind: [_only(_OF_CONTAINER, each) for each in spec[kind]] for kind in _CONTAINERS if spec.get(kind)}
    smaller = {**spec, **containers}
    smaller.pop("ephemeralContainers", None)
    reported = {
        kind: [_only(_OF_CONTAINER_STATUS, each) for each in status[kind] if each.get("resources")]
        for kind in _CONTAINER_STATUSES
        if status.get(kind)
    }
    return {
        "metadata": _only(_OF_METADATA, pod["metadata"]),
        "spec": smaller,
        "status": {**_only(_OF_STATUS, status), **reported},
    }


def _only(fields: tuple[str, ...], obj: Json) -> Json:
    return {field: obj[field] for field in fields if field in obj}

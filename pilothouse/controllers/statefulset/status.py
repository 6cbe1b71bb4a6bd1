"""Status of a StatefulSet."""

from __future__ import annotations

from pilothouse.controllers.statefulset.identity import replicas_of
from pilothouse.controllers.statefulset.members import Members, Versions, is_running_and_ready, revision_of
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import phase_of
from pilothouse.machinery.objects import Json, metadata, name_of

_COMPARED = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "currentReplicas",
    "updatedReplicas",
    "currentRevision",
    "updateRevision",
)


def new_status(versions: Versions, members: Members, collisions: int) -> Json:
    """Return the status from current pods, without completing an update."""
    created = [pod for pod in (*members.replicas.values(), *members.condemned) if phase_of(pod)]
    ready = [pod for pod in created if is_running_and_ready(pod)]
    revisions = [revision_of(pod) for pod in created if not is_deleting(pod)]
    current, update = name_of(versions.current), name_of(versions.update)
    return {
        "observedGeneration": metadata(versions.stateful_set).get("generation") or 0,
        "replicas": len(created),
        "readyReplicas": len(ready),
        "currentReplicas": revisions.count(current),
        "updatedReplicas": revisions.count(update),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
        "availableReplicas": sum(map(members.is_available, ready)),
    }


def complete_rolling_update(stateful_set: Json, status: Json) -> None:
    """Make the update revision current once every pod is updated and ready."""
    wanted = replicas_of(stateful_set)
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    counts = (status["updatedReplicas"], status["readyReplicas"], status["replicas"])
    if strategy.get("type") == "RollingUpdate" and counts == (wanted, wanted, wanted):
        status["currentReplicas"] = status["updatedReplicas"]
        status["currentRevision"] = status["updateRevision"]


def is_news(stateful_set: Json, status: Json) -> bool:
    """Return whether the status differs from the stored one."""
    said = stateful_set.get("status") or {}
    if status["observedGeneration"] > (said.get("observedGeneration") or 0):
        return True
    return any((said.get(field) or type(status[field])()) != status[field] for field in _COMPARED)

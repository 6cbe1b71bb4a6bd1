"""Status of a replica set: pod counts and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pilothouse.kinds.conditions import without_condition
from pilothouse.kinds.pods import is_available, is_ready
from pilothouse.machinery.objects import Json, labels_of, metadata
from pilothouse.machinery.times import format_time

REPLICA_FAILURE = "ReplicaFailure"
_COUNTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def calculated_status(
    replica_set: Json, pods: Sequence[Json], *, terminating: int | None, failure: str | None, now: datetime
) -> Json:
    """Return the status. `pods` are the active pods; `failure` is the error that prevented the desired size."""
    old = replica_set.get("status") or {}
    status: Json = {"replicas": len(pods)}
    status |= {name: count for name, count in _counts(replica_set, pods, now).items() if count}
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    if generation := metadata(replica_set).get("generation"):
        status["observedGeneration"] = generation
    if conditions := _conditions(replica_set, old.get("conditions") or [], len(pods), failure, now):
        status["conditions"] = conditions
    return status


def is_up_to_date(replica_set: Json, status: Json) -> bool:
    """Return whether the status is unchanged. Missing counts equal 0."""
    old = {name: count for name, count in (replica_set.get("status") or {}).items() if count or name not in _COUNTS}
    return {"replicas": 0} | old == status


def _counts(replica_set: Json, pods: Sequence[Json], now: datetime) -> dict[str, int]:
    spec = replica_set["spec"]
    template, seconds = labels_of(spec["template"]).items(), spec.get("minReadySeconds") or 0
    ready = [pod for pod in pods if is_ready(pod)]
    return {
        "fullyLabeledReplicas": sum(template <= labels_of(pod).items() for pod in pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(is_available(pod, seconds, now) for pod in ready) if seconds else len(ready),
    }


def _conditions(
    replica_set: Json, conditions: list[Json], count: int, failure: str | None, now: datetime
) -> list[Json]:
    """Return the conditions; an existing ReplicaFailure stays unchanged until the failure ends."""
    is_known = any(each["type"] == REPLICA_FAILURE for each in conditions)
    if failure is None:
        return without_condition(conditions, REPLICA_FAILURE)
    return conditions if is_known else [*conditions, _failure(replica_set, count, failure, now)]


def _failure(replica_set: Json, count: int, message: str, now: datetime) -> Json:
    condition = {"type": REPLICA_FAILURE, "status": "True", "lastTransitionTime": format_time(now)}
    if missing := replica_set["spec"]["replicas"] - count:
        condition["reason"] = "FailedCreate" if missing > 0 else "FailedDelete"
    return condition | {"message": message}

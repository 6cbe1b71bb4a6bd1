"""Progress conditions of a rollout: progressing, complete, deadline exceeded, replica failure."""

from __future__ import annotations

from datetime import datetime

from pilothouse.controllers.deployment.conditions import (
    DEADLINE_EXCEEDED,
    NEW_REPLICA_SET_AVAILABLE,
    PROGRESSING,
    REPLICA_FAILURE,
    REPLICA_SET_UPDATED,
    failure_of_replica_set,
    new_condition,
    remove_condition,
    set_condition,
)
from pilothouse.controllers.deployment.replica_sets import ReplicaSets
from pilothouse.controllers.deployment.status import (
    calculated_status,
    count,
    is_complete,
    is_progressing,
    is_timed_out,
    progress_deadline,
)
from pilothouse.kinds.conditions import find_in
from pilothouse.machinery.objects import Json, name_of


def rollout_status(deployment: Json, sets: ReplicaSets, now: datetime) -> Json:
    """Return the deployment's status, with the Progressing and ReplicaFailure conditions."""
    status = calculated_status(deployment, sets, now)
    if progress_deadline(deployment) is None:
        remove_condition(status, PROGRESSING)
    elif not _was_complete(deployment, status):
        _set_progress(deployment, sets.new, status, now)
    failure = replica_failure(sets)
    if failure is None:
        remove_condition(status, REPLICA_FAILURE)
    else:
        set_condition(status, failure)
    return status


def replica_failure(sets: ReplicaSets) -> Json | None:
    """Return the ReplicaFailure condition of the new replica set, else of an old one."""
    for replica_set in (*((sets.new,) if sets.new else ()), *sets.old):
        condition = find_in(replica_set.get("status") or {}, REPLICA_FAILURE)
        if condition is not None:
            return failure_of_replica_set(condition)
    return None


def _was_complete(deployment: Json, status: Json) -> bool:
    """Return whether the last rollout completed and no other is running; then Progressing stays unchanged."""
    condition = find_in(deployment.get("status") or {}, PROGRESSING) or {}
    is_alone = count(status, "replicas") == count(status, "updatedReplicas")
    return is_alone and condition.get("reason") == NEW_REPLICA_SET_AVAILABLE


def _set_progress(deployment: Json, new: Json | None, status: Json, now: datetime) -> None:
    name = f'Deployment "{name_of(deployment)}"' if new is None else f'ReplicaSet "{name_of(new)}"'
    before = deployment.get("status") or {}
    if is_complete(deployment, status):
        told = f"{name} has successfully progressed."
        set_condition(status, new_condition(PROGRESSING, "True", NEW_REPLICA_SET_AVAILABLE, told, now))
    elif is_progressing(before, status):
        told = f"{name} is progressing."
        _renew(status, new_condition(PROGRESSING, "True", REPLICA_SET_UPDATED, told, now))
    elif is_timed_out(deployment, status, now):
        told = f"{name} has timed out progressing."
        set_condition(status, new_condition(PROGRESSING, "False", DEADLINE_EXCEEDED, told, now))


def _renew(status: Json, condition: Json) -> None:
    """Replace the Progressing condition even if unchanged: the deadline counts from lastUpdateTime."""
    old = find_in(status, PROGRESSING)
    if old is not None and old["status"] == condition["status"]:
        condition = condition | {"lastTransitionTime": old["lastTransitionTime"]}
    remove_condition(status, PROGRESSING)
    set_condition(status, condition)

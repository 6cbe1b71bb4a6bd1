"""Deployment conditions, with the reasons expected by clients such as `kubectl rollout status`."""

from __future__ import annotations

from datetime import datetime

from pilothouse.kinds.conditions import Condition, find_in, keep_transition, timed_condition, without_condition
from pilothouse.machinery.objects import Json

AVAILABLE, PROGRESSING, REPLICA_FAILURE = "Available", "Progressing", "ReplicaFailure"

ENOUGH_AVAILABLE = "MinimumReplicasAvailable"
TOO_FEW_AVAILABLE = "MinimumReplicasUnavailable"

REPLICA_SET_UPDATED = "ReplicaSetUpdated"
REPLICA_SET_CREATE_ERROR = "ReplicaSetCreateError"
NEW_REPLICA_SET_CREATED = "NewReplicaSetCreated"
FOUND_NEW_REPLICA_SET = "FoundNewReplicaSet"
NEW_REPLICA_SET_AVAILABLE = "NewReplicaSetAvailable"
DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"


def new_condition(type_: str, status: str, reason: str, message: str, now: datetime) -> Json:
    return timed_condition(Condition(type_, status, reason, message), now, "lastUpdateTime")


def set_condition(status: Json, condition: Json) -> None:
    """Append the condition, replacing the condition of the same type; no-op if status and reason are unchanged.

    lastTransitionTime changes only with the status. The list is replaced, not mutated: it may belong to a cache.
    """
    old = find_in(status, condition["type"])
    if old is not None and (old["status"], old.get("reason")) == (condition["status"], condition.get("reason")):
        return
    remove_condition(status, condition["type"])
    status["conditions"] = [*(status.get("conditions") or ()), keep_transition(condition, old)]


def remove_condition(status: Json, type_: str) -> None:
    kept = without_condition(status.pop("conditions", None) or (), type_)
    if kept:
        status["conditions"] = kept


def failure_of_replica_set(condition: Json) -> Json:
    """Convert a replica set's ReplicaFailure condition to a deployment condition."""
    since = condition.get("lastTransitionTime")
    times = {"lastUpdateTime": since, "lastTransitionTime": since} if since else {}
    return {name: condition[name] for name in ("type", "status", "reason", "message") if name in condition} | times

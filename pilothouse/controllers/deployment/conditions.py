"""The conditions of a deployment, with the reasons that clients such as `kubectl rollout status` look for."""

from __future__ import annotations

from datetime import datetime

from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time

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
    moment = format_time(now)
    return {
        "type": type_,
        "status": status,
        "lastUpdateTime": moment,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


def condition_of(status: Json, type_: str) -> Json | None:
    return next((each for each in status.get("conditions") or () if each["type"] == type_), None)


def set_condition(status: Json, condition: Json) -> None:
    """Put the condition last in the status, unless it says what one of its type says already.

    The time of the last transition moves only when the condition's own status does. The list is replaced, never
    changed: it may be a cache's.
    """
    old = condition_of(status, condition["type"])
    if old is not None and (old["status"], old.get("reason")) == (condition["status"], condition.get("reason")):
        return
    if old is not None and old["status"] == condition["status"]:
        condition = condition | {"lastTransitionTime": old["lastTransitionTime"]}
    remove_condition(status, condition["type"])
    status["conditions"] = [*(status.get("conditions") or ()), condition]


def remove_condition(status: Json, type_: str) -> None:
    kept = [each for each in status.pop("conditions", None) or () if each["type"] != type_]
    if kept:
        status["conditions"] = kept


def failure_of_replica_set(condition: Json) -> Json:
    """A replica set's condition as one of its deployment."""
    since = condition.get("lastTransitionTime")
    times = {"lastUpdateTime": since, "lastTransitionTime": since} if since else {}
    return {name: condition[name] for name in ("type", "status", "reason", "message") if name in condition} | times

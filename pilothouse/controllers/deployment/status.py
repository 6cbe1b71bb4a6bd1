"""Status of a deployment: counts, conditions, and rollout state (complete, progressing, timed out).

Clients such as `kubectl rollout status` depend on the reasons of the conditions.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pilothouse.controllers.deployment import replica_sets
from pilothouse.kinds.conditions import Condition, find_in, keep_transition, timed_condition, without_condition
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.times import parse_time

_NO_DEADLINE = 2**31 - 1
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


def calculated_status(deployment: Json, sets: replica_sets.ReplicaSets, now: datetime) -> Json:
    """Return current counts and the Available condition; other conditions are kept."""
    old = deployment.get("status") or {}
    available = replica_sets.total(sets.all, "availableReplicas")
    counts = {
        "observedGeneration": metadata(deployment).get("generation"),
        "replicas": replica_sets.total(sets.all, "replicas"),
        "updatedReplicas": replica_sets.total((sets.new,), "replicas") if sets.new else 0,
        "readyReplicas": replica_sets.total(sets.all, "readyReplicas"),
        "availableReplicas": available,
        # A scale-down can leave more available pods than desired.
        "unavailableReplicas": max(0, replica_sets.total_size(sets.all) - available),
    }
    status = {name: count for name, count in counts.items() if count}
    terminating = replica_sets.total_terminating(sets.all)
    status = status if terminating is None else status | {"terminatingReplicas": terminating}
    for kept in ("collisionCount", "conditions"):
        if old.get(kept) is not None:
            status[kept] = old[kept]
    set_condition(status, _availability(deployment, status, now))
    return status


def _availability(deployment: Json, status: Json, now: datetime) -> Json:
    if count(status, "availableReplicas") >= replica_sets.min_available(deployment):
        return new_condition(AVAILABLE, "True", ENOUGH_AVAILABLE, "Deployment has minimum availability.", now)
    message = "Deployment does not have minimum availability."
    return new_condition(AVAILABLE, "False", TOO_FEW_AVAILABLE, message, now)


def count(status: Json, name: str) -> int:
    return status.get(name) or 0


def is_complete(deployment: Json, status: Json) -> bool:
    """Return whether all desired pods are updated and available, and no old pods are left."""
    counts = [count(status, name) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    seen = count(status, "observedGeneration") >= (metadata(deployment).get("generation") or 0)
    return seen and all(count == replica_sets.size(deployment) for count in counts)


def is_progressing(before: Json, after: Json) -> bool:
    """Return whether updated, ready or available pods increased, or old pods decreased."""
    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return _old_pods(after) < _old_pods(before) or any(
        count(after, replica_set) > count(before, replica_set) for replica_set in grown
    )


def _old_pods(status: Json) -> int:
    return count(status, "replicas") - count(status, "updatedReplicas")


def progress_deadline(deployment: Json) -> timedelta | None:
    """Return progressDeadlineSeconds; None = no deadline."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds in (None, _NO_DEADLINE) else timedelta(seconds=seconds)


def is_timed_out(deployment: Json, status: Json, now: datetime) -> bool:
    """Return whether the progress deadline has passed. A complete rollout does not time out."""
    deadline, condition = progress_deadline(deployment), find_in(status, PROGRESSING)
    if deadline is None or condition is None or condition.get("reason") == NEW_REPLICA_SET_AVAILABLE:
        return False
    if condition.get("reason") == DEADLINE_EXCEEDED:
        return True
    since = last_update(condition)
    return since is None or since + deadline < now


def last_update(condition: Json) -> datetime | None:
    text = condition.get("lastUpdateTime")
    return parse_time(text) if text else None


def seconds_until_check(deployment: Json, status: Json, now: datetime) -> float | None:
    """Return the seconds until the progress deadline; None if the rollout cannot time out."""
    deadline, condition = progress_deadline(deployment), find_in(deployment.get("status") or {}, PROGRESSING)
    if deadline is None or condition is None:
        return None
    if is_complete(deployment, status) or condition.get("reason") == DEADLINE_EXCEEDED:
        return None
    since = last_update(condition)
    return 0.0 if since is None else (since + deadline - now).total_seconds()


def rollout_status(deployment: Json, sets: replica_sets.ReplicaSets, now: datetime) -> Json:
    """Return the deployment's status, with the Progressing and ReplicaFailure conditions."""
    status = calculated_status(deployment, sets, now)
    if progress_deadline(deployment) is None:
        remove_condition(status, PROGRESSING)
    elif not _was_complete(deployment, status):
        new = sets.new
        name = f'Deployment "{name_of(deployment)}"' if new is None else f'ReplicaSet "{name_of(new)}"'
        before = deployment.get("status") or {}
        if is_complete(deployment, status):
            message = f"{name} has successfully progressed."
            set_condition(status, new_condition(PROGRESSING, "True", NEW_REPLICA_SET_AVAILABLE, message, now))
        elif is_progressing(before, status):
            message = f"{name} is progressing."
            condition = new_condition(PROGRESSING, "True", REPLICA_SET_UPDATED, message, now)
            # Replace the condition even if unchanged: the deadline counts from lastUpdateTime.
            old = find_in(status, PROGRESSING)
            if old is not None and old["status"] == condition["status"]:
                condition = condition | {"lastTransitionTime": old["lastTransitionTime"]}
            remove_condition(status, PROGRESSING)
            set_condition(status, condition)
        elif is_timed_out(deployment, status, now):
            message = f"{name} has timed out progressing."
            set_condition(status, new_condition(PROGRESSING, "False", DEADLINE_EXCEEDED, message, now))
    failure = replica_failure(sets)
    if failure is None:
        remove_condition(status, REPLICA_FAILURE)
    else:
        set_condition(status, failure)
    return status


def replica_failure(sets: replica_sets.ReplicaSets) -> Json | None:
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

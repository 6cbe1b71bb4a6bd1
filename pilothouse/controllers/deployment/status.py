"""Status of a deployment, and rollout state derived from it: complete, progressing, timed out."""

from __future__ import annotations

from datetime import datetime, timedelta

from pilothouse.controllers.deployment.conditions import (
    AVAILABLE,
    DEADLINE_EXCEEDED,
    ENOUGH_AVAILABLE,
    NEW_REPLICA_SET_AVAILABLE,
    PROGRESSING,
    TOO_FEW_AVAILABLE,
    new_condition,
    set_condition,
)
from pilothouse.controllers.deployment.fenceposts import min_available
from pilothouse.controllers.deployment.replica_sets import ReplicaSets, size, total, total_size, total_terminating
from pilothouse.kinds.conditions import find_in
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.times import parse_time

_NO_DEADLINE = 2**31 - 1


def calculated_status(deployment: Json, sets: ReplicaSets, now: datetime) -> Json:
    """Return current counts and the Available condition; other conditions are kept."""
    old = deployment.get("status") or {}
    status = _counts(deployment, sets)
    for kept in ("collisionCount", "conditions"):
        if old.get(kept) is not None:
            status[kept] = old[kept]
    set_condition(status, _availability(deployment, status, now))
    return status


def _counts(deployment: Json, sets: ReplicaSets) -> Json:
    available = total(sets.all, "availableReplicas")
    counts = {
        "observedGeneration": metadata(deployment).get("generation"),
        "replicas": total(sets.all, "replicas"),
        "updatedReplicas": total((sets.new,), "replicas") if sets.new else 0,
        "readyReplicas": total(sets.all, "readyReplicas"),
        "availableReplicas": available,
        # A scale-down can leave more available pods than desired.
        "unavailableReplicas": max(0, total_size(sets.all) - available),
    }
    status = {name: count for name, count in counts.items() if count}
    terminating = total_terminating(sets.all)
    return status if terminating is None else status | {"terminatingReplicas": terminating}


def _availability(deployment: Json, status: Json, now: datetime) -> Json:
    if count(status, "availableReplicas") >= min_available(deployment):
        return new_condition(AVAILABLE, "True", ENOUGH_AVAILABLE, "Deployment has minimum availability.", now)
    told = "Deployment does not have minimum availability."
    return new_condition(AVAILABLE, "False", TOO_FEW_AVAILABLE, told, now)


def count(status: Json, name: str) -> int:
    return status.get(name) or 0


def is_complete(deployment: Json, status: Json) -> bool:
    """Return whether all desired pods are updated and available, and no old pods are left."""
    counts = [count(status, name) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    seen = count(status, "observedGeneration") >= (metadata(deployment).get("generation") or 0)
    return seen and all(each == size(deployment) for each in counts)


def is_progressing(before: Json, after: Json) -> bool:
    """Return whether updated, ready or available pods increased, or old pods decreased."""
    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return _old_pods(after) < _old_pods(before) or any(count(after, each) > count(before, each) for each in grown)


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

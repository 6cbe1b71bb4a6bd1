"""The states of pods by which controllers count them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import parse_time

_ENDED = ("Succeeded", "Failed")


def pod_condition(pod: Json, type_: str) -> Json:
    """The condition of that type; empty if the pod has none."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), {})


def ready_condition(pod: Json) -> Json:
    return pod_condition(pod, "Ready")


def is_ready(pod: Json) -> bool:
    return bool(ready_condition(pod).get("status") == "True")


def is_deleted(pod: Json) -> bool:
    """Whether its deletion has begun."""
    return (pod.get("metadata") or {}).get("deletionTimestamp") is not None


def has_ended(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in _ENDED


def is_active(pod: Json) -> bool:
    return not has_ended(pod) and not is_deleted(pod)


def is_terminating(pod: Json) -> bool:
    """Whether it is being deleted and still runs."""
    return not has_ended(pod) and is_deleted(pod)


def ready_since(pod: Json) -> datetime | None:
    """Return when the pod became ready; None if it is not, or does not say."""
    condition = ready_condition(pod)
    since = condition.get("lastTransitionTime")
    return parse_time(since) if since and condition.get("status") == "True" else None


def is_available(pod: Json, min_ready_seconds: int, now: datetime) -> bool:
    """Whether it has been ready for so long."""
    if not is_ready(pod):
        return False
    if not min_ready_seconds:
        return True
    since = ready_since(pod)
    return since is not None and (now - since).total_seconds() >= min_ready_seconds


def next_availability(pods: Iterable[Json], min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until the next of the ready pods becomes available; None if none is on its way."""
    if min_ready_seconds <= 0:
        return None
    since = (each for pod in pods if (each := ready_since(pod)) is not None)
    waits = (min_ready_seconds - (now - each).total_seconds() for each in since)
    return min((wait for wait in waits if wait > 0), default=None)


def node_name(pod: Json) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")

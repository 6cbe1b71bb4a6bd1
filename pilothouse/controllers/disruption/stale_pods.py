"""Pods that were to be disrupted and were not: after two minutes their condition says that they no longer are."""

from __future__ import annotations

from datetime import datetime, timedelta

from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.times import format_time, parse_time

STALE_AFTER = timedelta(minutes=2)
_TARGET = "DisruptionTarget"


def seconds_until_stale(pod: Json, now: datetime) -> float | None:
    """0 if the condition is stale now, None if it will never be: a kubelet takes as long as it wants to."""
    condition = _condition(pod)
    status = pod.get("status") or {}
    if metadata(pod).get("deletionTimestamp") or condition.get("status") != "True":
        return None
    if condition.get("reason") == "TerminationByKubelet" or status.get("phase") in ("Failed", "Succeeded"):
        return None
    since = parse_time(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else None
    return 0.0 if since is None else max(0.0, (STALE_AFTER - (now - since)).total_seconds())


def without_disruption(pod: Json, now: datetime) -> Json:
    condition: Json = {"type": _TARGET, "status": "False", "lastTransitionTime": format_time(now)}
    if metadata(pod).get("generation"):
        condition["observedGeneration"] = metadata(pod)["generation"]
    status = pod["status"]
    conditions = [condition if each["type"] == _TARGET else each for each in status["conditions"]]
    return {**pod, "status": {**status, "conditions": conditions}}


def _condition(pod: Json) -> Json:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == _TARGET), {})

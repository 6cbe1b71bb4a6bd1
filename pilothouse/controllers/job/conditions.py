"""Conditions of jobs."""

from __future__ import annotations

from datetime import datetime

from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time

COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
SUCCESS_CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


def new_condition(type_: str, reason: str, message: str, now: datetime, *, status: str = "True") -> Json:
    when = format_time(now)
    return {
        "type": type_,
        "status": status,
        "lastProbeTime": when,
        "lastTransitionTime": when,
        "reason": reason,
        "message": message,
    }


def find_condition(status: Json, type_: str) -> Json | None:
    return next((each for each in status.get("conditions") or () if each["type"] == type_), None)


def find_true(status: Json, type_: str) -> Json | None:
    found = find_condition(status, type_)
    return found if found is not None and found["status"] == "True" else None


def ensure_condition(status: Json, new: Json) -> bool:
    """Put the condition into the status, and return whether it says something new.

    One that was never there is not made only to say False.
    """
    old = find_condition(status, new["type"])
    if old is None and new["status"] == "False":
        return False
    if old is not None and all(old.get(field) == new[field] for field in ("status", "reason", "message")):
        return False
    conditions = status.get("conditions") or []
    kept = [new if each is old else each for each in conditions]
    status["conditions"] = kept if old is not None else [*kept, new]
    return True

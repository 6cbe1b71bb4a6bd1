"""Conditions of jobs."""

from __future__ import annotations

from datetime import datetime

from pilothouse.kinds.conditions import Condition, find_in, timed_condition, with_condition
from pilothouse.machinery.objects import Json

COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
SUCCESS_CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


def new_condition(type_: str, reason: str, message: str, now: datetime, *, status: str = "True") -> Json:
    return timed_condition(Condition(type_, status, reason, message), now, "lastProbeTime")


def find_true(status: Json, type_: str) -> Json | None:
    condition = find_in(status, type_)
    return condition if condition is not None and condition["status"] == "True" else None


def ensure_condition(status: Json, new: Json) -> bool:
    """Set the condition; return whether the status changed.

    An absent condition is not added with status False.
    """
    old = find_in(status, new["type"])
    if old is None and new["status"] == "False":
        return False
    if old is not None and all(old.get(field) == new[field] for field in ("status", "reason", "message")):
        return False
    status["conditions"] = with_condition(status.get("conditions") or (), new)
    return True

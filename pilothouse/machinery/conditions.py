"""The conditions in the status of an object, as upstream's older kinds have them: without a generation."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now


@dataclass(frozen=True, slots=True)
class Condition:
    """The content of a condition, without the times of its changes."""

    type: str
    status: str
    reason: str
    message: str

    def is_same_as(self, other: Json | None) -> bool:
        return other is not None and Condition.of(other) == self

    @classmethod
    def of(cls, condition: Json) -> Condition:
        return cls(*(condition.get(field) or "" for field in ("type", "status", "reason", "message")))


def find_condition(obj: Json, kind: str) -> Json | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == kind), None)


def is_true(obj: Json, kind: str) -> bool:
    found = find_condition(obj, kind)
    return found is not None and found["status"] == "True"


def set_condition(obj: Json, condition: Condition) -> None:
    """The time of the last transition moves only when the status does."""
    found = find_condition(obj, condition.type)
    if found is None:
        status = obj.setdefault("status", {})
        found = {"type": condition.type, "status": "", "lastTransitionTime": None}
        status["conditions"] = [*(status.get("conditions") or ()), found]
    if found["status"] != condition.status or not found.get("lastTransitionTime"):
        found["lastTransitionTime"] = now()
    found |= {"status": condition.status, "reason": condition.reason, "message": condition.message}


def remove_condition(obj: Json, kind: str) -> None:
    status = obj.get("status") or {}
    status["conditions"] = [each for each in status.get("conditions") or () if each["type"] != kind]

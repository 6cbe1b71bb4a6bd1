"""Conditions in the status of an object: find, compare, set and remove them by type.

`find_condition`, `is_true` and `condition_statuses` read an object. `set_condition` changes an object that the caller
owns. `find_in`, `with_condition` and `without_condition` work on a status or a list of conditions and change nothing:
the list may belong to a cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import format_time, now


@dataclass(frozen=True, slots=True)
class Condition:
    """The content of a condition, without its times."""

    type: str
    status: str
    reason: str
    message: str

    def is_same_as(self, other: Json | None) -> bool:
        return other is not None and Condition.of(other) == self

    @classmethod
    def of(cls, condition: Json) -> Condition:
        return cls(*(condition.get(field) or "" for field in ("type", "status", "reason", "message")))


def conditions_of(obj: Json) -> list[Json]:
    """Return `status.conditions`; empty if there are none."""
    return (obj.get("status") or {}).get("conditions") or []


def find_condition(obj: Json, type_: str) -> Json | None:
    """Return the condition of the type in the object's status; None if it has none."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == type_:
            return condition  # type: ignore[no-any-return]
    return None


def find_in(status: Json, type_: str) -> Json | None:
    """Return the condition of the type in a status; None if it has none."""
    return next((condition for condition in status.get("conditions") or () if condition["type"] == type_), None)


def is_true(obj: Json, type_: str) -> bool:
    """Whether the object has the condition with status True."""
    condition = find_condition(obj, type_)
    return condition is not None and condition.get("status") == "True"


def condition_statuses(obj: Json) -> dict[str, str]:
    """Return type -> status of all conditions of the object."""
    return {condition["type"]: condition["status"] for condition in conditions_of(obj)}


def set_condition(obj: Json, condition: Condition) -> None:
    """Add or overwrite the condition. lastTransitionTime moves only with the status."""
    current = find_condition(obj, condition.type)
    if current is None:
        status = obj.setdefault("status", {})
        current = {"type": condition.type, "status": "", "lastTransitionTime": None}
        status["conditions"] = [*(status.get("conditions") or ()), current]
    if current["status"] != condition.status or not current.get("lastTransitionTime"):
        current["lastTransitionTime"] = now()
    current |= {"status": condition.status, "reason": condition.reason, "message": condition.message}


def remove_condition(obj: Json, type_: str) -> None:
    status = obj.get("status") or {}
    status["conditions"] = without_condition(status.get("conditions") or (), type_)


def timed_condition(condition: Condition, at: datetime, *other_times: str) -> Json:
    """Return the condition as JSON. lastTransitionTime, and the fields in `other_times`, are set to `at`."""
    moment = format_time(at)
    return {
        "type": condition.type,
        "status": condition.status,
        **dict.fromkeys(other_times, moment),
        "lastTransitionTime": moment,
        "reason": condition.reason,
        "message": condition.message,
    }


def keep_transition(new: Json, old: Json | None) -> Json:
    """Return `new` with the lastTransitionTime of `old` if both have the same status."""
    if old is None or old.get("status") != new["status"]:
        return new
    return {**new, "lastTransitionTime": old.get("lastTransitionTime")}


def with_condition(conditions: Iterable[Json], new: Json) -> list[Json]:
    """Return the conditions with `new` in the place of the condition of its type, or at the end."""
    replaced = [new if condition["type"] == new["type"] else condition for condition in conditions]
    return replaced if any(condition is new for condition in replaced) else [*replaced, new]


def without_condition(conditions: Iterable[Json], type_: str) -> list[Json]:
    return [condition for condition in conditions if condition["type"] != type_]

"""The conditions in the status of a CustomResourceDefinition."""

from __future__ import annotations

from dataclasses import dataclass

from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now

ESTABLISHED = "Established"
NAMES_ACCEPTED = "NamesAccepted"
TERMINATING = "Terminating"
NON_STRUCTURAL_SCHEMA = "NonStructuralSchema"
API_APPROVED = "KubernetesAPIApprovalPolicyConformant"


@dataclass(frozen=True, slots=True)
class Condition:
    """What a condition says, whenever it came to say so."""

    type: str
    status: str
    reason: str
    message: str

    def is_said_by(self, other: Json | None) -> bool:
        return other is not None and Condition.of(other) == self

    @classmethod
    def of(cls, condition: Json) -> Condition:
        return cls(*(condition.get(field) or "" for field in ("type", "status", "reason", "message")))


def find_condition(definition: Json, kind: str) -> Json | None:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == kind), None)


def is_true(definition: Json, kind: str) -> bool:
    found = find_condition(definition, kind)
    return found is not None and found["status"] == "True"


def set_condition(definition: Json, condition: Condition) -> None:
    """The time of the last transition moves only when the status does."""
    found = find_condition(definition, condition.type)
    if found is None:
        status = definition.setdefault("status", {})
        found = {"type": condition.type, "status": "", "lastTransitionTime": None}
        status["conditions"] = [*(status.get("conditions") or ()), found]
    if found["status"] != condition.status or not found.get("lastTransitionTime"):
        found["lastTransitionTime"] = now()
    found |= {"status": condition.status, "reason": condition.reason, "message": condition.message}


def remove_condition(definition: Json, kind: str) -> None:
    status = definition.get("status") or {}
    status["conditions"] = [each for each in status.get("conditions") or () if each["type"] != kind]

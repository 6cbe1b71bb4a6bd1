"""Conditions in a pod's status."""

from __future__ import annotations

from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now


def find_condition(pod: Json, kind: str) -> Json | None:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            assert isinstance(condition, dict)
            return condition
    return None


def has_condition(pod: Json, kind: str) -> bool:
    """Whether the condition is there and true."""
    condition = find_condition(pod, kind)
    return condition is not None and condition.get("status") == "True"


def set_condition(pod: Json, kind: str, status: str, *, reason: str = "", message: str = "") -> None:
    """Replaces the condition of that type, or adds it. Its time is that of the last change of its status."""
    current = find_condition(pod, kind)
    condition: Json = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": now()}
    condition |= {name: text for name, text in (("reason", reason), ("message", message)) if text}
    if current is None:
        pod.setdefault("status", {}).setdefault("conditions", []).append(condition)
        return
    if current.get("status") == status:
        condition["lastTransitionTime"] = current.get("lastTransitionTime")
    current.clear()
    current.update(condition)

"""The condition `Available` of an APIService."""

from __future__ import annotations

from pilothouse.kinds.conditions import Condition, find_condition
from pilothouse.machinery.objects import Json

AVAILABLE = "Available"

LOCAL_AVAILABLE = Condition(AVAILABLE, "True", "Local", "Local APIServices are always available")
"""The condition of every APIService without a service."""


def shown_availability(api_service: Json) -> str:
    """Return the availability as a table shows it: a reason stands beside it where there is none."""
    condition = find_condition(api_service, AVAILABLE)
    if condition is None:
        return "Unknown"
    status: str = condition["status"]
    reason = condition.get("reason")
    return f"{status} ({reason})" if reason and status != "True" else status

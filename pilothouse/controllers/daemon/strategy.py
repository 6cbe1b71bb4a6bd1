"""maxSurge and maxUnavailable of a DaemonSet's rolling update."""

from __future__ import annotations

from pilothouse.machinery.integers import scaled_int_or_percent
from pilothouse.machinery.objects import Json


def is_rolling(daemon_set: Json) -> bool:
    return _strategy(daemon_set).get("type") == "RollingUpdate"


def max_surge(daemon_set: Json, desired: int) -> int:
    """Return maxSurge; percentages are rounded up."""
    return _scaled(daemon_set, "maxSurge", desired)


def max_unavailable(daemon_set: Json, desired: int) -> int:
    """Return maxUnavailable; at least 1 if maxSurge is 0."""
    allowed = _scaled(daemon_set, "maxUnavailable", desired)
    return 1 if desired > 0 and allowed == 0 and max_surge(daemon_set, desired) == 0 else allowed


def _scaled(daemon_set: Json, limit: str, total: int) -> int:
    if not is_rolling(daemon_set):
        return 0
    value = (_strategy(daemon_set).get("rollingUpdate") or {}).get(limit) or 0
    return scaled_int_or_percent(value, total, round_up=True)


def _strategy(daemon_set: Json) -> Json:
    return daemon_set["spec"].get("updateStrategy") or {}

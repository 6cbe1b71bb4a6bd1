"""Which taints a pod tolerates, and for how long."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pilothouse.machinery.objects import Json


def tolerates(toleration: Json, taint: Json) -> bool:
    """An empty effect stands for all effects, an empty key with Exists for all keys."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if (toleration.get("operator") or "Equal") == "Exists":
        return True
    return toleration.get("operator", "Equal") in ("", "Equal") and _value(toleration) == _value(taint)


def matching_tolerations(taints: Iterable[Json], tolerations: Sequence[Json]) -> list[Json] | None:
    """Return for each taint the first toleration that tolerates it; None if one is not tolerated."""
    used = [next((each for each in tolerations if tolerates(each, taint)), None) for taint in taints]
    return None if None in used else [each for each in used if each is not None]


def tolerated_seconds(used: Iterable[Json]) -> float:
    """Return how long all of these tolerate: infinity for ever."""
    limits = [each["tolerationSeconds"] for each in used if each.get("tolerationSeconds") is not None]
    return max(0.0, float(min(limits))) if limits else math.inf


def _value(of: Json) -> str:
    return of.get("value") or ""

"""Bounds of a rolling update: maxSurge, maxUnavailable and the sizes derived from them."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.controllers.deployment.replica_sets import available, size, total_size
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.integers import scaled_int_or_percent
from pilothouse.machinery.objects import Json, text

ROLLING_UPDATE, RECREATE = "RollingUpdate", "Recreate"


@dataclass(frozen=True, slots=True)
class Fenceposts:
    surge: int
    unavailable: int


def strategy_of(deployment: Json) -> str:
    return str(text(deployment["spec"], "strategy", "type"))


def resolve(max_surge: int | str, max_unavailable: int | str, desired: int) -> Fenceposts:
    """Resolve percentages: surge is rounded up, unavailable down.

    If both resolve to 0, unavailable becomes 1, so that the update can proceed; a surge might exceed a quota.
    """
    surge, unavailable = (
        scaled_int_or_percent(max_surge, desired, round_up=True),
        scaled_int_or_percent(max_unavailable, desired, round_up=False),
    )
    return Fenceposts(surge, 1 if surge == unavailable == 0 else unavailable)


def fenceposts(deployment: Json) -> Fenceposts:
    """Return the bounds of a rolling update; other strategies have (0, 0). `unavailable` is at most the desired
    size."""
    if strategy_of(deployment) != ROLLING_UPDATE:
        return Fenceposts(0, 0)
    desired = size(deployment)
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    resolved = resolve(rolling.get("maxSurge") or 0, rolling.get("maxUnavailable") or 0, desired)
    return Fenceposts(resolved.surge, min(resolved.unavailable, desired))


def max_size(deployment: Json) -> int:
    """Return the maximum total size of all replica sets."""
    return size(deployment) + fenceposts(deployment).surge


def min_available(deployment: Json) -> int:
    return size(deployment) - fenceposts(deployment).unavailable


def new_set_size(deployment: Json, replica_sets: Iterable[Json], current: int) -> int:
    """Return the next size of the new replica set, given its `current` size; `replica_sets` includes the new set."""
    if strategy_of(deployment) == RECREATE:
        return size(deployment)
    room = max_size(deployment) - total_size(replica_sets)
    return current if room <= 0 else current + min(room, size(deployment) - current)


def max_scaled_down(deployment: Json, new: Json, old: Iterable[Json]) -> int:
    """Return the number of pods that can be removed from old replica sets now. Unavailable pods of the new set count
    against maxUnavailable, so that pods that never become ready do not displace working pods."""
    missing = size(new) - available(new)
    return total_size((*old, new)) - min_available(deployment) - missing

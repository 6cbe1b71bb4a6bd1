"""How far a rolling update may go: maxSurge and maxUnavailable, and the sizes that follow from them."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.controllers.deployment.replica_sets import available, size, total_size
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.integers import scaled_int_or_percent
from pilothouse.machinery.objects import Json

ROLLING_UPDATE, RECREATE = "RollingUpdate", "Recreate"


@dataclass(frozen=True, slots=True)
class Fenceposts:
    surge: int
    unavailable: int


def strategy_of(deployment: Json) -> str:
    return str((deployment["spec"].get("strategy") or {}).get("type") or "")


def resolve(max_surge: int | str, max_unavailable: int | str, desired: int) -> Fenceposts:
    """Shares of a surge are rounded up, those of what may be missing down.

    If neither leaves any room one may be missing, so that the update can go on: a surge might be refused by a quota.
    """
    surge, unavailable = (
        scaled_int_or_percent(max_surge, desired, round_up=True),
        scaled_int_or_percent(max_unavailable, desired, round_up=False),
    )
    return Fenceposts(surge, 1 if surge == unavailable == 0 else unavailable)


def fenceposts(deployment: Json) -> Fenceposts:
    """None but those of a rolling update leave any room; nothing can be missing of nothing."""
    if strategy_of(deployment) != ROLLING_UPDATE:
        return Fenceposts(0, 0)
    desired = size(deployment)
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    resolved = resolve(rolling.get("maxSurge") or 0, rolling.get("maxUnavailable") or 0, desired)
    return Fenceposts(resolved.surge, min(resolved.unavailable, desired))


def max_size(deployment: Json) -> int:
    """How many pods all replica sets may want together."""
    return size(deployment) + fenceposts(deployment).surge


def min_available(deployment: Json) -> int:
    return size(deployment) - fenceposts(deployment).unavailable


def new_set_size(deployment: Json, replica_sets: Iterable[Json], current: int) -> int:
    """The size of the set with the new template, which has `current` now and is counted among `replica_sets`."""
    if strategy_of(deployment) == RECREATE:
        return size(deployment)
    room = max_size(deployment) - total_size(replica_sets)
    return current if room <= 0 else current + min(room, size(deployment) - current)


def max_scaled_down(deployment: Json, new: Json, old: Iterable[Json]) -> int:
    """How many pods of the old sets can go now. What the new set still misses counts as missing already, so that
    pods that never come up do not take working ones away."""
    missing = size(new) - available(new)
    return total_size((*old, new)) - min_available(deployment) - missing

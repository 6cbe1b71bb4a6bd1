"""Proportional scaling of replica sets during a rollout."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.controllers.deployment.fenceposts import max_size
from pilothouse.controllers.deployment.replica_sets import available, largest_first, size, total_size
from pilothouse.controllers.deployment.revisions import desired_replicas, max_replicas
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, part


@dataclass(frozen=True, slots=True)
class Resize:
    replica_set: Json
    size: int


def is_saturated(deployment: Json, replica_set: Json | None) -> bool:
    """Return whether the replica set has the deployment's full size, all available, and was sized for that size."""
    if replica_set is None:
        return False
    wanted = size(deployment)
    return size(replica_set) == wanted == available(replica_set) and desired_replicas(replica_set) == wanted


def proportional_sizes(deployment: Json, replica_sets: Sequence[Json]) -> list[Resize]:
    """Return new sizes of replica sets that all have pods; the largest gets the rounding remainder.

    For equal sizes, the newest grows first and the oldest shrinks first.
    """
    allowed = max_size(deployment) if size(deployment) > 0 else 0
    to_add = allowed - total_size(replica_sets)
    ordered = largest_first(replica_sets, newest_first=to_add > 0) if to_add else replica_sets
    sizes, added = [], 0
    for replica_set in ordered:
        share = _share(deployment, replica_set, to_add, to_add - added)
        sizes.append(size(replica_set) + share)
        added += share
    if sizes:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return [Resize(*each) for each in zip(ordered, sizes, strict=True)]


def _share(deployment: Json, replica_set: Json, to_add: int, left: int) -> int:
    """Return the size change, bounded by `left` in either direction."""
    if not to_add or not left:
        return 0
    fraction = _fraction(deployment, replica_set)
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _fraction(deployment: Json, replica_set: Json) -> int:
    """Return the size change that preserves the replica set's fraction of the total."""
    if size(deployment) == 0:
        return -size(replica_set)
    before = max_replicas(replica_set) or part(deployment, "status").get("replicas") or 0
    if not before:
        return 0
    return _rounded(size(replica_set) * max_size(deployment) / before) - size(replica_set)


def _rounded(number: float) -> int:
    """Round halves away from zero, as Go does."""
    return int(number + 0.5) if number >= 0 else int(number - 0.5)

"""Garbage collection of old replica sets beyond revisionHistoryLimit."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.controllers.deployment.actions import Actions
from pilothouse.controllers.deployment.replica_sets import size
from pilothouse.controllers.deployment.revisions import by_revision
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json, metadata

_NO_LIMIT = 2**31 - 1


async def clean_up(actions: Actions, deployment: Json, old: Iterable[Json]) -> None:
    """Delete old replica sets without pods beyond the limit, lowest revision first. Raises StatusError."""
    for replica_set in dispensable(deployment, old):
        await actions.delete(deployment, replica_set)


def dispensable(deployment: Json, old: Iterable[Json]) -> list[Json]:
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit in (None, _NO_LIMIT):
        return []
    staying = sorted((each for each in old if not is_deleting(each)), key=by_revision)
    return [each for each in staying[: max(0, len(staying) - limit)] if _is_empty(each)]


def _is_empty(replica_set: Json) -> bool:
    status = replica_set.get("status") or {}
    is_seen = (metadata(replica_set).get("generation") or 0) <= (status.get("observedGeneration") or 0)
    return is_seen and not status.get("replicas") and size(replica_set) == 0

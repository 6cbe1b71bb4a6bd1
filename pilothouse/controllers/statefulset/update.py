"""One sync of a StatefulSet: current and update revision, pods, status and revision history."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from pilothouse.client.controller import Requeue
from pilothouse.client.rest.client import Client
from pilothouse.controllers.history import History, holds_template_of, new_revision, next_number, oldest_first
from pilothouse.controllers.resources import STATEFUL_SETS
from pilothouse.controllers.statefulset.claim_control import ClaimsFailed, Wrote
from pilothouse.controllers.statefulset.convergence import Convergence
from pilothouse.controllers.statefulset.identity import replicas_of
from pilothouse.controllers.statefulset.members import Members, Versions, is_running_and_ready, revision_of
from pilothouse.controllers.statefulset.pods import StatefulPods
from pilothouse.controllers.workloads.owner_lookup import OwnerLookup
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import next_availability, phase_of
from pilothouse.machinery import version_rules
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_STATUS_TRIES = 5
_COMPARED = (
    "replicas",
    "readyReplicas",
    "availableReplicas",
    "currentReplicas",
    "updatedReplicas",
    "currentRevision",
    "updateRevision",
)


class StatefulSetUpdate:
    def __init__(self, client: Client, pods: StatefulPods, history: History, wrote: Wrote, owners: OwnerLookup) -> None:
        self._sets = client.for_resource(STATEFUL_SETS)
        self._pods = pods
        self._history = history
        self._wrote = wrote
        self._owners = owners

    async def run(
        self, stateful_set: Json, revisions: Sequence[Json], pods: Sequence[Json], now: datetime
    ) -> Requeue | None:
        """Take all steps possible now; return the requeue, if any. Raises StatusError or ClaimsFailed."""
        ordered = oldest_first(revisions)
        versions, collisions = await find_versions(self._history, stateful_set, ordered)
        members = Members.of(stateful_set, pods, now)
        try:
            status, failure = new_status(versions, members, collisions), None
            is_current = partial(self._owners.is_current, versions.stateful_set)
            if not is_deleting(versions.stateful_set):
                try:
                    status["currentReplicas"] -= await Convergence(self._pods, versions, members, is_current).run()
                except (StatusError, ClaimsFailed) as error:
                    failure = error
            complete_rolling_update(versions.stateful_set, status)
            if is_news(versions.stateful_set, status):
                with suppress(NotFound):  # a deleted StatefulSet needs no status
                    await self._write(versions.stateful_set, status)
            if failure is not None:
                raise failure
        except (StatusError, ClaimsFailed):
            await self._truncate(versions, ordered, pods)
            raise
        await self._truncate(versions, ordered, pods)
        # No event reports availability: requeue while ready pods wait for minReadySeconds.
        if not members.min_ready_seconds or status["readyReplicas"] == status["availableReplicas"]:
            return None
        soon = next_availability(pods, members.min_ready_seconds, members.now)
        return Requeue(members.min_ready_seconds if soon is None else soon)

    async def _write(self, stateful_set: Json, status: Json) -> None:
        sets = self._sets.namespace(namespace_of(stateful_set))
        for tries_left in reversed(range(_STATUS_TRIES)):
            try:
                written = await sets.update_status({**stateful_set, "status": status})
                self._wrote(stateful_set, STATEFUL_SETS, written)
                return
            except Conflict:
                if not tries_left:
                    raise
            stateful_set = await sets.get(name_of(stateful_set))

    async def _truncate(self, versions: Versions, ordered: Sequence[Json], pods: Sequence[Json]) -> None:
        live = {name_of(versions.current), name_of(versions.update), *map(revision_of, pods)}
        limit = versions.stateful_set["spec"].get("revisionHistoryLimit")
        await self._history.truncate(ordered, live, 10 if limit is None else limit)


def new_status(versions: Versions, members: Members, collisions: int) -> Json:
    """Return the status from current pods, without completing an update."""
    created = [pod for pod in (*members.replicas.values(), *members.condemned) if phase_of(pod)]
    ready = [pod for pod in created if is_running_and_ready(pod)]
    revisions = [revision_of(pod) for pod in created if not is_deleting(pod)]
    current, update = name_of(versions.current), name_of(versions.update)
    return {
        "observedGeneration": metadata(versions.stateful_set).get("generation") or 0,
        "replicas": len(created),
        "readyReplicas": len(ready),
        "currentReplicas": revisions.count(current),
        "updatedReplicas": revisions.count(update),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": collisions,
        "availableReplicas": sum(map(members.is_available, ready)),
    }


def complete_rolling_update(stateful_set: Json, status: Json) -> None:
    """Make the update revision current once every pod is updated and ready."""
    wanted = replicas_of(stateful_set)
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    counts = (status["updatedReplicas"], status["readyReplicas"], status["replicas"])
    completes = strategy.get("type") == "RollingUpdate" or version_rules.holds("CompletedUpdatesOnDelete")
    if completes and counts == (wanted, wanted, wanted):
        status["currentReplicas"] = status["updatedReplicas"]
        status["currentRevision"] = status["updateRevision"]


def is_news(stateful_set: Json, status: Json) -> bool:
    """Return whether the status differs from the stored one."""
    current = stateful_set.get("status") or {}
    if status["observedGeneration"] > (current.get("observedGeneration") or 0):
        return True
    return any((current.get(field) or type(status[field])()) != status[field] for field in _COMPARED)


async def find_versions(history: History, stateful_set: Json, ordered: Sequence[Json]) -> tuple[Versions, int]:
    """Return the StatefulSet's versions and its collision count. `ordered` are the known revisions.

    A new template creates a revision; a reused template gets the highest number. Raises StatusError.
    """
    status = stateful_set.get("status") or {}
    collisions = int(status.get("collisionCount") or 0)
    equal = [revision for revision in ordered if holds_template_of(revision, stateful_set)]
    if not equal:
        new = new_revision(stateful_set, next_number(ordered), collisions)
        update, collisions = await history.create(stateful_set, new, collisions)
    elif equal[-1] is ordered[-1]:
        update = equal[-1]
    else:
        update = await history.renumber(equal[-1], next_number(ordered))
    named = (revision for revision in ordered if name_of(revision) == status.get("currentRevision"))
    return Versions(stateful_set, next(named, update), update), collisions

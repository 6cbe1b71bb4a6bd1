"""ControllerRevisions of a DaemonSet: current revision and history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.client.rest.client import Client
from pilothouse.controllers.history.revisions import holds_template_of, named_revision, number_of
from pilothouse.controllers.resources import CONTROLLER_REVISIONS, DAEMON_SETS, PODS
from pilothouse.controllers.workloads.template_hash import CONTROLLER_REVISION_HASH, template_hash
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, part
from pilothouse.machinery.status_error import PilothouseError


class StaleCollisionCount(PilothouseError):
    """The cached collisionCount is stale, so the revision hash is too."""


class DaemonRevisions:
    """Writes the revisions of one DaemonSet. Every method raises StatusError."""

    def __init__(self, client: Client, daemon_set: Json) -> None:
        namespace = namespace_of(daemon_set)
        self._revisions = client.for_resource(CONTROLLER_REVISIONS, namespace=namespace)
        self._sets = client.for_resource(DAEMON_SETS, namespace=namespace)
        self._pods = client.for_resource(PODS, namespace=namespace)
        self._daemon_set = daemon_set

    async def current_and_old(self, known: Iterable[Json], pods: Sequence[Json]) -> tuple[Json, list[Json]]:
        """Return the current revision, created if missing, and all other revisions.

        The current revision gets the highest number. Duplicates are merged, and pods are relabelled with the remaining
        hash. Raises StaleCollisionCount.
        """
        labelled = [await self._labelled(revision) for revision in known]
        current = [each for each in labelled if holds_template_of(each, self._daemon_set)]
        old = [each for each in labelled if not holds_template_of(each, self._daemon_set)]
        number = max(map(number_of, old), default=0) + 1
        if not current:
            return await self._create(number), old
        kept = await self._without_duplicates(current, pods)
        if number_of(kept) < number:
            await self._revisions.update({**kept, "revision": number})
        return kept, old

    async def forget(self, old: Sequence[Json], pods: Iterable[Json]) -> None:
        """Delete the oldest revisions without pods beyond revisionHistoryLimit."""
        limit = self._daemon_set["spec"].get("revisionHistoryLimit")
        surplus = len(old) - (10 if limit is None else limit)
        if surplus <= 0:
            return
        live = {_digest(pod) for pod in pods}
        dead = [each for each in sorted(old, key=number_of) if not _digest(each) or _digest(each) not in live]
        for revision in dead[:surplus]:
            await self._revisions.delete(name_of(revision))

    async def _labelled(self, revision: Json) -> Json:
        """Return the revision with a hash label; the default hash is its name."""
        if CONTROLLER_REVISION_HASH in labels_of(revision):
            return revision
        labels = {**labels_of(revision), CONTROLLER_REVISION_HASH: name_of(revision)}
        return await self._revisions.update({**revision, "metadata": {**metadata(revision), "labels": labels}})

    async def _without_duplicates(self, current: Sequence[Json], pods: Sequence[Json]) -> Json:
        kept = max(reversed(current), key=number_of)
        if len(current) == 1:
            return kept
        labels = {CONTROLLER_REVISION_HASH: _digest(kept)}
        for pod in pods:
            if _digest(pod) != _digest(kept):
                await self._pods.patch(name_of(pod), {"metadata": {"labels": labels}})
        for revision in current:
            if revision is not kept:
                await self._revisions.delete(name_of(revision))
        return kept

    async def _create(self, number: int) -> Json:
        collisions = part(self._daemon_set, "status").get("collisionCount")
        digest = template_hash(self._daemon_set["spec"]["template"], collisions)
        name = f"{name_of(self._daemon_set)}-{digest}"
        new = named_revision(self._daemon_set, number, name, {CONTROLLER_REVISION_HASH: digest})
        try:
            return await self._revisions.create(new)
        except AlreadyExists:
            existing = await self._revisions.get(name_of(new))
            if holds_template_of(existing, self._daemon_set):
                return existing
            await self._count_collision()
            raise

    async def _count_collision(self) -> None:
        """Increment collisionCount, which changes the next hash. Raises StaleCollisionCount."""
        fresh = await self._sets.get(name_of(self._daemon_set))
        status, believed = fresh.get("status") or {}, part(self._daemon_set, "status").get("collisionCount")
        if (known := status.get("collisionCount")) != believed:
            told = f"found a stale collision count ({believed}, expected {known}) of DaemonSet"
            raise StaleCollisionCount(f'{told} "{name_of(fresh)}" while processing; will retry until it is updated')
        await self._sets.update_status({**fresh, "status": {**status, "collisionCount": (known or 0) + 1}})


def _digest(obj: Json) -> str:
    return labels_of(obj).get(CONTROLLER_REVISION_HASH) or ""

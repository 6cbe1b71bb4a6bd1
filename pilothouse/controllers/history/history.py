"""Reads and writes of an owner's ControllerRevisions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.rest.client import Client
from pilothouse.controllers.history.revisions import data_hash, number_of, revision_name
from pilothouse.controllers.resources import CONTROLLER_REVISIONS
from pilothouse.controllers.workloads.controller_index import controlled_or_orphaned, index_by_controller
from pilothouse.machinery.errors import AlreadyExists, Conflict
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of
from pilothouse.machinery.selectors.labels import Selector

_TRIES = 4


class History:
    """Revisions of all owners, read from the informer cache. Every write raises StatusError."""

    def __init__(self, client: Client, informer: SharedIndexInformer) -> None:
        self._revisions = client.for_resource(CONTROLLER_REVISIONS)
        self._informer = informer
        index_by_controller(informer)

    def of(self, owner: Json, selector: Selector) -> list[Json]:
        """Return the matching revisions that the owner controls, and matching orphans."""
        known = controlled_or_orphaned(self._informer, owner)
        return [revision for revision in known if selector.matches(labels_of(revision))]

    async def create(self, owner: Json, revision: Json, collisions: int) -> tuple[Json, int]:
        """Create the revision under a unique name; return (revision, new collision count).

        An existing revision with the same name and data is returned instead.
        """
        revisions, data = self._revisions.namespace(namespace_of(owner)), revision["data"]
        while True:
            name = revision_name(name_of(owner), data_hash(data, collisions))
            try:
                return await revisions.create(
                    {**revision, "metadata": {**revision["metadata"], "name": name}}
                ), collisions
            except AlreadyExists:
                existing = await revisions.get(name)
            if existing.get("data") == data:
                return existing, collisions
            collisions += 1

    async def renumber(self, revision: Json, number: int) -> Json:
        """Update the revision's number; return the updated revision."""
        revisions = self._revisions.namespace(namespace_of(revision))
        for attempt in range(_TRIES):
            if number_of(revision) == number:
                break
            try:
                return await revisions.update({**revision, "revision": number})
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
            revision = await revisions.get(name_of(revision))
        return revision

    async def delete(self, revision: Json) -> None:
        await self._revisions.namespace(namespace_of(revision)).delete(name_of(revision))

    async def truncate(self, ordered: Sequence[Json], live: Collection[str], limit: int) -> None:
        """Delete the oldest revisions that are not live, beyond the limit."""
        dead = [revision for revision in ordered if name_of(revision) not in live]
        for revision in dead[: max(0, len(dead) - limit)] if limit >= 0 else ():
            await self.delete(revision)

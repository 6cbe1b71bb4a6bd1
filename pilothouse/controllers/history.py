"""ControllerRevisions: former templates of a StatefulSet or DaemonSet, for rollbacks.

Each revision holds a patch that restores a template. The name contains a hash of the patch.

    revision = new_revision(stateful_set, 3, collisions=0)      → web-7d5f8c9b6f, revision 3
    restored(stateful_set, revision)                            → the StatefulSet with that template
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import orjson

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.rest.client import Client
from pilothouse.controllers.resources import CONTROLLER_REVISIONS
from pilothouse.controllers.workloads.owner_lookup import controlled_or_orphaned, index_by_controller
from pilothouse.kinds.owners import controller_ref
from pilothouse.machinery.errors import AlreadyExists, Conflict
from pilothouse.machinery.gofmt import escape_html
from pilothouse.machinery.names_generator import safe_encode
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of, namespace_of, part
from pilothouse.machinery.selectors.labels import Selector

_TRIES = 4
HASH_LABEL = "controller.kubernetes.io/hash"
_MAX_PREFIX = 223
_FNV_OFFSET, _FNV_PRIME = 2166136261, 16777619


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


def template_patch(owner: Json) -> Json:
    """Return the strategic merge patch that restores the owner's current template."""
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def restored(owner: Json, revision: Json) -> Json:
    """Return a copy of the owner with the revision's template."""
    kept = part(revision, "data", "spec", "template")
    template = {field: value for field, value in kept.items() if field != "$patch"}
    return {**owner, "spec": {**owner["spec"], "template": template}}


def holds_template_of(revision: Json, owner: Json) -> bool:
    """Return whether the revision holds the owner's current template."""
    return bool(revision.get("data") == template_patch(owner))


def new_revision(owner: Json, number: int, collisions: int) -> Json:
    """Return a revision of the owner's current template, named by the hash of its data."""
    digest = data_hash(template_patch(owner), collisions)
    return named_revision(owner, number, revision_name(name_of(owner), digest), {HASH_LABEL: digest})


def named_revision(owner: Json, number: int, name: str, labels: dict[str, str]) -> Json:
    """Return a revision of the owner's current template, with `labels` and the template's labels.

    Data keys are sorted, because a later patch of the revision would sort them and data is immutable.
    """
    meta: Json = {
        "name": name,
        "namespace": namespace_of(owner),
        "labels": {**labels_of(owner["spec"]["template"]), **labels},
        "annotations": dict(annotations_of(owner)),
        "ownerReferences": [controller_ref(owner)],
    }
    data = orjson.loads(_canonical(template_patch(owner)))
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "data": data, "revision": number}


def revision_name(prefix: str, digest: str) -> str:
    """Return the name of a revision; the prefix is truncated to fit 253 characters."""
    return f"{prefix[:_MAX_PREFIX]}-{digest}"


def data_hash(data: Any, collisions: int) -> str:
    """Return the same hash of a revision's data as upstream, for this collision count."""
    text = escape_html(_canonical(data).decode()) + str(collisions)
    digest = _FNV_OFFSET
    for byte in text.encode():
        digest = digest * _FNV_PRIME & 0xFFFFFFFF ^ byte
    return safe_encode(str(digest))


def number_of(revision: Json) -> int:
    return int(revision.get("revision") or 0)


def oldest_first(revisions: Iterable[Json]) -> list[Json]:
    """Sort revisions by number, creation time and name."""
    return sorted(
        revisions,
        key=lambda revision: (
            number_of(revision),
            metadata(revision).get("creationTimestamp") or "",
            name_of(revision),
        ),
    )


def next_number(ordered: Sequence[Json]) -> int:
    """Return the number that follows the sorted revisions."""
    return number_of(ordered[-1]) + 1 if ordered else 1


def _canonical(data: Any) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)

"""Informer index of objects by controlling owner."""

from __future__ import annotations

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.kinds.owners import controller_of
from pilothouse.machinery.objects import Json, namespace_of, uid_of

CONTROLLER_UID_INDEX = "controllerUID"
"""Index by uid of the controlling owner; orphans are indexed by namespace and a slash."""


def index_by_controller(informer: SharedIndexInformer) -> None:
    """Add the index to the informer. Idempotent, so that several controllers can share an informer."""
    if CONTROLLER_UID_INDEX not in informer.indexer.indexers:
        informer.add_indexers({CONTROLLER_UID_INDEX: _controller_uid})


def controlled_or_orphaned(informer: SharedIndexInformer, owner: Json) -> list[Json]:
    """Return objects controlled by the owner, and orphans in its namespace. The informer must be indexed by
    controller."""
    indexer = informer.indexer
    owned = indexer.by_index(CONTROLLER_UID_INDEX, uid_of(owner))
    return [*owned, *indexer.by_index(CONTROLLER_UID_INDEX, _orphans_in(namespace_of(owner)))]


def orphans_in(informer: SharedIndexInformer, namespace: str) -> list[Json]:
    """Return the orphans in the namespace. The informer must be indexed by controller."""
    return list(informer.indexer.by_index(CONTROLLER_UID_INDEX, _orphans_in(namespace)))


def _controller_uid(obj: Json) -> tuple[str, ...]:
    reference = controller_of(obj)
    return (_orphans_in(namespace_of(obj)) if reference is None else str(reference.get("uid")),)


def _orphans_in(namespace: str) -> str:
    return f"{namespace}/"

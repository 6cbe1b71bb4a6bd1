"""The one owner that controls an object, and finding what an owner controls without looking at everything."""

from __future__ import annotations

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.kinds.owners import controller_of
from pilothouse.machinery.objects import Json, namespace_of, uid_of

CONTROLLER_UID_INDEX = "controllerUID"
"""By the uid of the owner that controls the object; orphans are found under their namespace and a slash."""


def index_by_controller(informer: SharedIndexInformer) -> None:
    """May be called for the same informer by any number of controllers."""
    if CONTROLLER_UID_INDEX not in informer.indexer.indexers:
        informer.add_indexers({CONTROLLER_UID_INDEX: _controller_uid})


def controlled_or_orphaned(informer: SharedIndexInformer, owner: Json) -> list[Json]:
    """What the owner controls, and what nobody does in its namespace. The informer must be indexed by controller."""
    indexer = informer.indexer
    owned = indexer.by_index(CONTROLLER_UID_INDEX, uid_of(owner))
    return [*owned, *indexer.by_index(CONTROLLER_UID_INDEX, _orphans_in(namespace_of(owner)))]


def orphans_in(informer: SharedIndexInformer, namespace: str) -> list[Json]:
    """What nobody controls in the namespace. The informer must be indexed by controller."""
    return list(informer.indexer.by_index(CONTROLLER_UID_INDEX, _orphans_in(namespace)))


def _controller_uid(obj: Json) -> tuple[str, ...]:
    reference = controller_of(obj)
    return (_orphans_in(namespace_of(obj)) if reference is None else str(reference.get("uid")),)


def _orphans_in(namespace: str) -> str:
    return f"{namespace}/"

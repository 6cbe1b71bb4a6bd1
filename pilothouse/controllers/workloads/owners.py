"""The one owner that controls an object, and finding what an owner controls without looking at everything."""

from __future__ import annotations

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.machinery.objects import Json, name_of, namespace_of, uid_of

CONTROLLER_UID_INDEX = "controllerUID"
"""By the uid of the owner that controls the object; orphans are found under their namespace and a slash."""


def controller_of(obj: Json) -> Json | None:
    """The owner reference that says `controller: true`."""
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def is_controlled_by(obj: Json, owner: Json) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.get("uid") == uid_of(owner)


def controller_ref(owner: Json) -> Json:
    """The reference by which what is made for the owner names it. The owner says its kind and apiVersion."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


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

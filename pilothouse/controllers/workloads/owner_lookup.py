"""Lookup of the owners affected by a pod or other owned object: its owner, or potential adopters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pilothouse.client.cache.indexer import NAMESPACE_INDEX
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_of
from pilothouse.machinery.objects import Json, labels_of, metadata, namespace_of, uid_of
from pilothouse.machinery.selectors.labels import Selector, from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector

CONTROLLER_UID_INDEX = "controllerUID"
"""Index by uid of the controlling owner; orphans are indexed by namespace and a slash."""


class OwnerLookup:
    """Finds owners of one kind in an informer cache."""

    def __init__(
        self, owners: SharedIndexInformer, kind: str, selector_of: Callable[[Json], Selector] | None = None
    ) -> None:
        """`selector_of` overrides the default reading of an owner's selector."""
        self._owners = owners
        self._kind = kind
        self._selector_of = selector_of or _selector_of

    def owner_of(self, obj: Json) -> Json | None:
        """Return the controlling owner; None if its kind differs or it no longer exists."""
        reference = controller_of(obj)
        if reference is None or reference.get("kind") != self._kind:
            return None
        owner = self._owners.indexer.get_by_key(f"{namespace_of(obj)}/{reference.get('name')}")
        return owner if owner is not None and uid_of(owner) == reference.get("uid") else None

    def is_current(self, owner: Json) -> bool:
        """Return whether the cache has the owner with the same generation, and the owner is not terminating."""
        known = self._owners.indexer.get_by_key(meta_namespace_key(owner))
        if known is None or uid_of(known) != uid_of(owner) or is_deleting(known):
            return False
        return bool(metadata(known).get("generation") == metadata(owner).get("generation"))

    def adopters_of(self, orphan: Json) -> Iterator[Json]:
        """Yield the owners whose selectors match an orphan."""
        labels = labels_of(orphan)
        if not labels:
            return
        for owner in self._owners.indexer.by_index(NAMESPACE_INDEX, namespace_of(orphan)):
            try:
                selector = self._selector_of(owner)
            except InvalidSelector:
                continue
            if not selector.empty and selector.matches(labels):
                yield owner

    def concerned_by_addition(self, obj: Json) -> list[Json]:
        """Return the owner, or the potential adopters of an orphan that is not terminating."""
        if controller_of(obj) is None:
            return [] if is_deleting(obj) else [*self.adopters_of(obj)]
        return self._just(self.owner_of(obj))

    def concerned_by_change(self, old: Json, new: Json) -> list[Json]:
        """Return the owner and any former owner, plus potential adopters of an orphan with a changed owner or
        labels."""
        has_other_owner = controller_of(old) != controller_of(new)
        former = self._just(self.owner_of(old)) if has_other_owner else []
        if controller_of(new) is not None:
            return [*former, *self._just(self.owner_of(new))]
        is_news = has_other_owner or labels_of(old) != labels_of(new)
        return [*former, *(self.adopters_of(new) if is_news else ())]

    @staticmethod
    def _just(owner: Json | None) -> list[Json]:
        return [] if owner is None else [owner]


def _selector_of(owner: Json) -> Selector:
    return from_label_selector(owner["spec"].get("selector"))


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

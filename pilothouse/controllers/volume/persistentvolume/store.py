"""Newest known states: from the informers, or from this controller's own later writes.

Without its own writes, the controller could bind one volume to two claims before the informer catches up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilothouse.client.cache.indexer import Indexer, IndexFunc
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.controllers.volume.persistentvolume.fields import (
    BIND_COMPLETED,
    claim_key_of,
    claim_ref,
    class_of_claim,
    class_of_volume,
)
from pilothouse.machinery.objects import Json, annotations_of, metadata, resource_version_of

_BY_CLAIM, _FREE_BY_CLASS, _UNBOUND_BY_CLASS = "claim", "free", "unbound"


class NewestStates:
    def __init__(self, indexers: Mapping[str, IndexFunc]) -> None:
        self._indexer = Indexer(indexers)

    def keep(self, obj: Json) -> bool:
        """Store the object; return False if a newer version is known."""
        known = self._indexer.get(obj)
        if known is not None and int(resource_version_of(known)) > int(resource_version_of(obj)):
            return False
        metadata(obj).pop("managedFields", None)
        self._indexer.add(obj)
        return True

    def get(self, key: str) -> Json | None:
        return self._indexer.get_by_key(key)

    def forget(self, key: str) -> Json | None:
        """Remove the object; return the last known state."""
        known = self._indexer.get_by_key(key)
        self._indexer.delete(key)
        return known

    def all(self) -> list[Json]:
        return self._indexer.list()

    def _by(self, index: str, value: str) -> list[Json]:
        return self._indexer.by_index(index, value)


class Volumes(NewestStates):
    def __init__(self) -> None:
        super().__init__({_BY_CLAIM: _claim_of, _FREE_BY_CLASS: _class_of_free})

    def candidates(self, claim: Json) -> list[Json]:
        """Return volumes reserved for the claim, and free volumes of its class."""
        reserved = self._by(_BY_CLAIM, meta_namespace_key(claim))
        return reserved + self._by(_FREE_BY_CLASS, class_of_claim(claim))


class Claims(NewestStates):
    def __init__(self) -> None:
        super().__init__({_UNBOUND_BY_CLASS: _class_of_unbound})

    def unbound(self, class_name: str) -> list[str]:
        """Return the keys of unbound claims of the class."""
        return [meta_namespace_key(claim) for claim in self._by(_UNBOUND_BY_CLASS, class_name)]


def _claim_of(volume: Json) -> Iterable[str]:
    return (claim_key_of(volume),) if claim_ref(volume) else ()


def _class_of_free(volume: Json) -> Iterable[str]:
    return () if claim_ref(volume) else (class_of_volume(volume),)


def _class_of_unbound(claim: Json) -> Iterable[str]:
    return () if BIND_COMPLETED in annotations_of(claim) else (class_of_claim(claim),)

"""Assumed objects: the expected state of objects whose write is not in the informer yet."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.machinery.objects import Json, resource_version_of


class AssumedObjects:
    """An assumption holds until the informer shows a newer state than the assumption's base."""

    def __init__(self, objects: Indexer) -> None:
        self._objects = objects
        self._assumed: dict[str, Json] = {}

    def assume(self, obj: Json) -> None:
        self._assumed[meta_namespace_key(obj)] = obj

    def forget(self, key: str) -> None:
        self._assumed.pop(key, None)

    def get(self, key: str) -> Json | None:
        shown, assumed = self._objects.get_by_key(key), self._assumed.get(key)
        if shown is None or assumed is None:
            return shown
        if resource_version_of(shown) != resource_version_of(assumed):
            del self._assumed[key]
            return shown
        return assumed

    def __iter__(self) -> Iterator[Json]:
        for key in self._objects.list_keys():
            if (obj := self.get(key)) is not None:
                yield obj

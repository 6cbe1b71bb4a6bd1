"""The objects of one registry as they are now, kept by a watch, and those who want to hear of every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from pilothouse.apiserver.registry.follower import RegistryFollower
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.objects import Json, name_of, namespace_of

Changed: TypeAlias = Callable[[list[Json]], None]
"""Is told of objects that are new, have changed, or are gone; which of these is for it to find out."""


class RegistryInformer:
    """Guarantees: whoever is told of a change finds it in here; changes of one object are told in their order.

    Objects are shared between all readers: nobody may change them.
    """

    _objects: dict[tuple[str, str], Json]  # by namespace and name
    _news: list[Json]  # what was heard of and is to be told

    def __init__(self, registry: RegistryStore) -> None:
        self._follower = RegistryFollower(registry, self._put, self._drop, self._settled)
        self._objects = {}
        self._news = []
        self._listeners: list[Changed] = []
        self.synced = asyncio.Event()

    def get(self, name: str, *, namespace: str = "") -> Json | None:
        return self._objects.get((namespace, name))

    def all(self) -> list[Json]:
        return list(self._objects.values())

    def listen(self, changed: Changed) -> None:
        self._listeners.append(changed)

    async def wait_synced(self) -> None:
        await self.synced.wait()

    async def run(self) -> None:
        """For ever. Starts over when the watch ends, as it does when the store is lost."""
        await self._follower.fill_in_the_end()
        self.synced.set()
        await self._follower.follow()

    def _put(self, obj: Json) -> None:
        self._objects[namespace_of(obj), name_of(obj)] = obj
        self._news.append(obj)

    def _drop(self, namespace: str, name: str) -> None:
        if (gone := self._objects.pop((namespace, name), None)) is not None:
            self._news.append(gone)

    def _settled(self) -> None:
        news, self._news = self._news, []
        self._notify(news)

    def _notify(self, objects: list[Json]) -> None:
        for changed in self._listeners:
            changed(objects)

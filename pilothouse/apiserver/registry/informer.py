"""The objects of one registry as they are now, kept by a watch, and those who want to hear of every change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.cacher.events import EventType
from pilothouse.machinery.objects import Json, name_of, namespace_of

_log = logging.getLogger(__name__)

_RETRY = 0.5

Changed: TypeAlias = Callable[[list[Json]], None]
"""Is told of objects that are new, have changed, or are gone; which of these is for it to find out."""


class RegistryInformer:
    """Guarantees: whoever is told of a change finds it in here; changes of one object are told in their order.

    Objects are shared between all readers: nobody may change them.
    """

    _objects: dict[tuple[str, str], Json]  # by namespace and name

    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry
        self._objects = {}
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
        while True:
            try:
                await self._follow()
            except Exception as error:
                _log.warning("cannot watch %s: %s", self._registry.resource.names.plural, error)
            await asyncio.sleep(_RETRY)

    async def _follow(self) -> None:
        cacher, prefix = self._registry.cacher, self._registry.keys.prefix
        page = await cacher.list(prefix)
        self._replace([stored.parse() for stored in page.objects])
        self.synced.set()
        watcher = await cacher.watch(prefix, after=page.revision)
        try:
            async for event in watcher:
                self._apply(event.object.parse(), gone=event.type is EventType.DELETED)
        finally:
            watcher.abandon()

    def _apply(self, obj: Json, *, gone: bool) -> None:
        if gone:
            self._objects.pop(_key(obj), None)
        else:
            self._objects[_key(obj)] = obj
        self._tell([obj])

    def _replace(self, objects: list[Json]) -> None:
        before = self._objects
        self._objects = {_key(each): each for each in objects}
        missing = [each for key, each in before.items() if key not in self._objects]
        self._tell([*missing, *objects])

    def _tell(self, objects: list[Json]) -> None:
        for changed in self._listeners:
            changed(objects)


def _key(obj: Json) -> tuple[str, str]:
    return namespace_of(obj), name_of(obj)

"""The definitions as they are now, kept by a watch, and those who want to hear of every change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.cacher.events import EventType
from pilothouse.machinery.objects import Json, name_of

_log = logging.getLogger(__name__)

_RETRY = 0.5

Changed: TypeAlias = Callable[[list[Json]], None]
"""Is told of definitions that are new, have changed, or are gone; which of these is for it to find out."""


class Definitions:
    """Guarantees: whoever is told of a change finds it in here; changes of one definition are told in their order."""

    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry
        self._by_name: dict[str, Json] = {}
        self._listeners: list[Changed] = []
        self.synced = asyncio.Event()

    def get(self, name: str) -> Json | None:
        """Not to be changed."""
        return self._by_name.get(name)

    def of_group(self, group: str) -> list[Json]:
        """By name."""
        found = [each for each in self._by_name.values() if each["spec"]["group"] == group]
        return sorted(found, key=name_of)

    def listen(self, changed: Changed) -> None:
        self._listeners.append(changed)

    async def run(self) -> None:
        """For ever. Starts over when the watch ends, as it does when the store is lost."""
        while True:
            try:
                await self._follow()
            except Exception as error:
                _log.warning("cannot watch custom resource definitions: %s", error)
            await asyncio.sleep(_RETRY)

    async def _follow(self) -> None:
        cacher, prefix = self._registry.cacher, self._registry.keys.prefix
        page = await cacher.list(prefix)
        self._replace([stored.parse() for stored in page.objects])
        self.synced.set()
        watcher = await cacher.watch(prefix, after=page.revision)
        try:
            async for event in watcher:
                definition = event.object.parse()
                if event.type is EventType.DELETED:
                    self._by_name.pop(name_of(definition), None)
                else:
                    self._by_name[name_of(definition)] = definition
                self._tell([definition])
        finally:
            watcher.abandon()

    def _replace(self, definitions: list[Json]) -> None:
        gone = self._by_name
        self._by_name = {name_of(each): each for each in definitions}
        missing = [each for name, each in gone.items() if name not in self._by_name]
        self._tell([*missing, *definitions])

    def _tell(self, definitions: list[Json]) -> None:
        for changed in self._listeners:
            changed(definitions)

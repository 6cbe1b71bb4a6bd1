"""Objects that plugins look up: by name in their newest state, or all of them as far as the cache knows."""

from __future__ import annotations

from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.parsing import parse_all
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.objects import Json


class ObjectLookup:
    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry

    async def get(self, name: str, namespace: str = "") -> Json | None:
        with translated(self._registry.resource.group_resource, name):
            found = await self._registry.newest(namespace, name)
        return None if found is None else found.parse()

    async def list(self, namespace: str = "") -> list[Json]:
        """Return the objects of a namespace, or all, as far as the cache knows: enough for most writes."""
        with translated(self._registry.resource.group_resource):
            page = await self._registry.list_known(namespace)
        return await parse_all(page.objects)

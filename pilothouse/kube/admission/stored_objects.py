"""Objects that plugins look up by name, always in their newest state."""

from __future__ import annotations

from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.objects import Json


class StoredObjects:
    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry

    async def get(self, name: str, namespace: str = "") -> Json | None:
        with translated(self._registry.resource.group_resource, name):
            found = await self._registry.storage.get(self._registry.keys.object(namespace, name))
        return None if found is None else found.parse()

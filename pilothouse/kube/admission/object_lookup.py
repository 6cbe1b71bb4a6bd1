"""Objects that plugins look up: by name in their newest state, or all of them as far as the cache knows."""

from __future__ import annotations

from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.parsing import parse_all
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.object_names import is_valid_path_segment_name


class ObjectLookup:
    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry

    async def get(self, name: str, namespace: str = "") -> Json | None:
        """None also for names that no object can have."""
        if invalid_resource_name(name):
            return None
        with translated(self._registry.resource.group_resource, name):
            found = await self._registry.newest(namespace, name)
        return None if found is None else found.parse()

    async def list(self, namespace: str = "") -> list[Json]:
        """Return the objects of a namespace, or all, as far as the cache knows: enough for most writes."""
        if self._registry.ready and not self._registry.known_count:
            return []  # as most clusters have no LimitRange, for one
        with translated(self._registry.resource.group_resource):
            page = await self._registry.list_known(namespace)
        return await parse_all(page.objects)


def invalid_resource_name(name: str) -> str:
    """Return why a client cannot even ask for an object of this name; empty where it can."""
    if not name:
        return "resource name may not be empty"
    problems = is_valid_path_segment_name(name)
    return f"invalid resource name {quote(name)}: [{' '.join(problems)}]" if problems else ""

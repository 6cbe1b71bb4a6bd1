"""Priority classes as the Priority plugin needs them, read from the registry of the resource."""

from __future__ import annotations

from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.kube.admission.object_lookup import ObjectLookup
from pilothouse.machinery.objects import Json


class StoredPriorityClasses:
    """Every new pod asks for the default class, so it is looked for again only when the classes may have changed."""

    _at: Revision | None  # of the watch cache when `_default` was found

    def __init__(self, registry: RegistryStore) -> None:
        self._registry = registry
        self._at = None
        self._default: Json | None = None

    async def get(self, name: str) -> Json | None:
        return await ObjectLookup(self._registry).get(name)

    async def default(self) -> Json | None:
        if self._at is None or self._at != self._registry.known_revision:
            with translated(self._registry.resource.group_resource):
                page = await self._registry.list_known()
            classes = (stored.parse() for stored in page.objects)
            defaults = (each for each in classes if each.get("globalDefault"))
            self._default = min(defaults, key=lambda each: each.get("value") or 0, default=None)
            self._at = page.revision
        return self._default

"""Access of the controllers to CustomResourceDefinitions: the informer, and status writes with kube-apiserver's field
manager."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.endpoints.groups import APIVersion
from pilothouse.apiserver.endpoints.install import field_manager
from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.extensions.customresourcedefinitions.storage import DefinitionStore, served_definitions
from pilothouse.extensions.customresourcedefinitions.strategy import GROUP_VERSION, DefinitionStatusStrategy
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, uid_of


class DefinitionInformer(RegistryInformer):
    _by_group: dict[str, dict[str, Json]]  # group → name → definition; inner dicts are never empty

    def __init__(self, registry: RegistryStore) -> None:
        super().__init__(registry)
        self._by_group = {}

    def of_group(self, group: str) -> list[Json]:
        """Return the definitions of a group, sorted by name. Thread-safe."""
        return [definition for _, definition in sorted(self._by_group.get(group, {}).items())]

    def _notify(self, objects: list[Json]) -> None:
        for definition in objects:
            name = name_of(definition)
            group = definition["spec"]["group"]
            current, of_group = self.get(name), self._by_group.setdefault(group, {})
            before = of_group.pop(name, None)
            if current is not None:
                if before is not None and before["spec"] == current["spec"]:
                    # Most changes affect the status only: share the spec with the older object.
                    current["spec"] = before["spec"]
                of_group[name] = current
            if not of_group:
                del self._by_group[group]
        super()._notify(objects)


class StatusWriter:
    def __init__(self, registry: DefinitionStore) -> None:
        version = APIVersion(GROUP_VERSION, served_definitions(registry))
        statuses = registry.with_strategy(DefinitionStatusStrategy())
        self._access = OwnAccess(statuses, field_manager(version.resources[1], [version]))

    async def write(self, definition: Json, change: Callable[[Json], None]) -> bool:
        """Apply `change` to the current definition. Returns False if the definition is gone or replaced."""
        found = False

        def changed(current: Json) -> None:
            nonlocal found
            found = uid_of(current) == uid_of(definition)
            if found:
                change(current)

        try:
            await self._access.update(definition, changed)
        except NotFound:
            return False
        return found

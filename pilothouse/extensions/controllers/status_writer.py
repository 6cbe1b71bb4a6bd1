"""Status writes of the server to definitions, with kube-apiserver's field manager."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.endpoints.groups import APIVersion
from pilothouse.apiserver.endpoints.install import field_manager
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.extensions.customresourcedefinitions.storage import DefinitionStore, served_definitions
from pilothouse.extensions.customresourcedefinitions.strategy import GROUP_VERSION, DefinitionStatusStrategy
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, uid_of


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

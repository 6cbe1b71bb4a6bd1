"""The server's own access to a resource: as itself, past authorization and admission, and by the resource's rules."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from pilothouse.apiserver.authn.tokens import loopback_user
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.interface import unchecked, unchecked_update
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.registry.parsing import parse_all
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwnAccess:
    """A registry as the server's own parts use it. All methods raise StatusErrors."""

    registry: RegistryStore
    field_manager: str = ""

    async def get(self, name: str, *, namespace: str = "") -> Json | None:
        try:
            found = await self.registry.get(self._context(namespace), name, GetOptions())
        except NotFound:
            return None
        return found.parse()

    async def list(self) -> list[Json]:
        """Return all objects in all namespaces."""
        found = await self.registry.list(self._context(""), ListOptions())
        return await parse_all(found.objects)

    async def ensure(self, obj: Json) -> None:
        """Creates the object unless there is one of its name, whatever that one says."""
        if await self.get(name_of(obj), namespace=namespace_of(obj)) is None:
            with suppress(AlreadyExists):
                await self.create(obj)

    async def create(self, obj: Json) -> None:
        """Create the object, with the kind's defaults filled in. Raises AlreadyExists."""
        context = self._context(namespace_of(obj))
        self.registry.strategy.default(obj)
        await self.registry.create(
            context, obj, options=WriteOptions(field_manager=self.field_manager), validate=unchecked
        )

    async def update(self, obj: Json, change: Callable[[Json], None]) -> None:
        """Changes the object of this name as it is when the change is written. Raises NotFound."""

        async def changed(current: Json | None) -> Json:
            if current is None:
                raise NotFound.of(self.registry.resource.group_resource, name_of(obj))
            change(current)
            return current

        update = unchecked_update(changed, WriteOptions(field_manager=self.field_manager))
        await self.registry.update(self._context(namespace_of(obj)), name_of(obj), update)

    async def delete(self, name: str, *, namespace: str = "") -> None:
        """An object that is not there is fine."""
        try:
            await self.registry.delete(self._context(namespace), name, options=DeleteOptions(), validate=unchecked)
        except NotFound:
            return

    def _context(self, namespace: str) -> RequestContext:
        return RequestContext(namespace, self.registry.resource.group_resource, loopback_user(), warn=_log.warning)

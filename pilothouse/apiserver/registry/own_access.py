"""The server's access to its own resources: without authorization and admission, but with the rules of the resource."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import field
from typing import Protocol

from pilothouse.apiserver.authn.tokens import loopback_user
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.registry.operations import RequestContext, unchecked, unchecked_update
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import AlreadyExists, NotFound
from pilothouse.machinery.objects import Json, name_of, namespace_of

KUBE_APISERVER = "kube-apiserver"
_log = logging.getLogger(__name__)


class FieldTracker(Protocol):
    """Keeps managedFields up to date, like a FieldManager."""

    def update(self, live: Json | None, new: Json, manager: str) -> None: ...
    def apply(self, live: Json | None, patch: Json, manager: str, *, force: bool) -> Json: ...


class Untracked:
    """For readers and deleters: writes leave managedFields unchanged."""

    def update(self, live: Json | None, new: Json, manager: str) -> None: ...

    def apply(self, live: Json | None, patch: Json, manager: str, *, force: bool) -> Json:
        raise NotImplementedError("what is not tracked cannot be applied")


@dataclass(frozen=True, slots=True)
class OwnAccess:
    """A registry for components of the server. All methods raise StatusErrors."""

    registry: RegistryStore
    fields: FieldTracker = field(default_factory=Untracked)
    manager: str = KUBE_APISERVER
    """The field manager of the writes."""

    async def get(self, name: str, *, namespace: str = "") -> Json | None:
        try:
            found = await self.registry.get(self._context(namespace), name, GetOptions())
        except NotFound:
            return None
        return found.parse()

    async def list(self) -> list[Json]:
        """Return the objects of every namespace."""
        found = await self.registry.list(self._context(""), ListOptions())
        return await parse_all(found.objects)

    async def ensure(self, obj: Json) -> None:
        """Create the object unless an object with its name exists."""
        if await self.get(name_of(obj), namespace=namespace_of(obj)) is None:
            with suppress(AlreadyExists):
                await self.create(obj)

    async def create(self, obj: Json) -> None:
        """Create the object, with the kind's defaults filled in. Raises AlreadyExists."""
        context = self._context(namespace_of(obj))
        self.registry.strategy.default(obj)
        self.fields.update(None, obj, self.manager)
        await self.registry.create(context, obj, options=WriteOptions(), validate=unchecked)

    async def update(self, obj: Json, change: Callable[[Json], None]) -> None:
        """Apply `change` to the stored object with this name. Retry on conflict. Raises NotFound."""

        def changed(current: Json) -> Json:
            before = deepcopy(current)
            change(current)
            self.fields.update(before, current, self.manager)
            return current

        await self._update(obj, changed)

    async def replace(self, current: StoredObject, obj: Json) -> None:
        """Replace `current` by `obj`, without the rules of the resource. Raises RevisionConflict and KeyNotFound."""
        self.fields.update(current.parse(), obj, self.manager)
        await self.registry.replace(current, obj)

    async def apply(self, patch: Json) -> None:
        """Apply the patch by force. Raises NotFound."""
        await self._update(patch, lambda current: self.fields.apply(current, patch, self.manager, force=True))

    async def _update(self, obj: Json, make: Callable[[Json], Json]) -> None:
        async def made(current: Json | None) -> Json:
            if current is None:
                raise NotFound.of(self.registry.resource.group_resource, name_of(obj))
            return make(current)

        update = unchecked_update(made, WriteOptions())
        await self.registry.update(self._context(namespace_of(obj)), name_of(obj), update)

    async def delete(self, name: str, *, namespace: str = "") -> None:
        """Delete an object. A missing object is not an error."""
        try:
            await self.registry.delete(self._context(namespace), name, options=DeleteOptions(), validate=unchecked)
        except NotFound:
            return

    def _context(self, namespace: str) -> RequestContext:
        return RequestContext(namespace, self.registry.resource.group_resource, loopback_user(), warn=_log.warning)


async def parse_all(stored: Sequence[StoredObject]) -> list[Json]:
    """Return a fresh copy of every object."""
    return await offload_by_size(sum(each.size for each in stored), _parse_all, stored)


def _parse_all(stored: Sequence[StoredObject]) -> list[Json]:
    return [each.parse() for each in stored]

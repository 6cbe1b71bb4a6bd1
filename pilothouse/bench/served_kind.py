"""One kind of the bench over its store: its endpoints, and a way for its owner to write the status of its objects."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.errors import KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.observed_store import ObservedStore
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.customresources.version_endpoints import api_versions, open_registry
from pilothouse.machinery.objects import Json, name_of

_WRITTEN_AFTER: Final = 0.05
"""Seconds in which changes of a status gather, if nobody reads it before."""


class Owner(Protocol):
    """Who does what the objects of one kind say."""

    kind: ServedKind
    """Set when the kind is there: to be told of objects that have changed."""

    async def hear(self, name: str, obj: Json | None) -> None:
        """An object was written, or is gone. Whoever wrote it has an answer when this returns."""

    def revised(self, name: str, obj: Json) -> Json | None:
        """Return the object as it should be by now, most of all its status; None to leave it as it is."""

    async def about_to_be_read(self) -> None:
        """Somebody will read objects of the kind: what is to be told of them should be by then."""


class ServedKind:
    """The owner hears of every object: of those that are there when it starts, then of each write before its answer."""

    def __init__(self, resource: CustomResource, store: Store, *, root: str, owner: Owner) -> None:
        self.resource = resource
        self.registry = open_registry(resource, ObservedStore(store, owner.hear), root=root)
        self.access = OwnAccess(self.registry)
        self._owner = owner
        self._unwritten: dict[str, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        owner.kind = self

    @property
    def served(self) -> list[ServedResource]:
        """The endpoints: of the kind, and of its status."""
        (version,) = api_versions(self.resource, self.registry)
        return version.resources

    async def start(self) -> None:
        await self.registry.start()
        await self.registry.wait_ready()
        for obj in await self.access.list():
            await self._owner.hear(name_of(obj), obj)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            self._writing.cancel()
        await self.registry.stop()

    def changed(self, name: str) -> None:
        """Have the object revised soon, or before the next read."""
        self._unwritten[name] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITTEN_AFTER, self._begin_to_write)

    async def flush(self) -> None:
        """Return when every object is as it should be."""
        await self._owner.about_to_be_read()
        while self._unwritten or (self._writing is not None and not self._writing.done()):
            self._begin_to_write()
            assert self._writing is not None
            await asyncio.shield(self._writing)

    def _begin_to_write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name=f"status of {self.resource.plural}")

    async def _write(self) -> None:
        while self._unwritten:
            name = next(iter(self._unwritten))
            del self._unwritten[name]
            try:
                await self._write_one(name)
            except RevisionConflict:
                self._unwritten[name] = None
            except KeyNotFound:
                continue  # it was deleted meanwhile

    async def _write_one(self, name: str) -> None:
        current = await self.registry.newest("", name)
        if current is None:
            return
        obj = current.parse()
        revised = self._owner.revised(name, obj)
        if revised is not None and revised != obj:
            await self.registry.replace(current, revised)

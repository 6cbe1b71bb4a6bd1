"""One kind of the bench over its store: its endpoints, and a way for its owner to write the status of its objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.errors import KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import Store
from pilothouse.bench.heard_store import Hear, HeardStore
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.customresources.version_endpoints import api_versions, open_registry
from pilothouse.machinery.objects import Json, name_of

StatusOf: TypeAlias = Callable[[str], Json | None]
"""Return the status of the object with this name as it should be by now; None where there is none."""


class ServedKind:
    """`hear` is told of every object: of those that are there when it starts, then of each write before its answer."""

    def __init__(self, resource: CustomResource, store: Store, *, root: str, hear: Hear, status_of: StatusOf) -> None:
        self.resource = resource
        self.registry = open_registry(resource, HeardStore(store, hear), root=root)
        self.access = OwnAccess(self.registry)
        self._hear = hear
        self._status_of = status_of
        self._unwritten: dict[str, None] = {}
        self._writing: asyncio.Task[None] | None = None

    @property
    def served(self) -> list[ServedResource]:
        """The endpoints: of the kind, and of its status."""
        (version,) = api_versions(self.resource, self.registry)
        return version.resources

    async def start(self) -> None:
        await self.registry.start()
        await self.registry.wait_ready()
        for obj in await self.access.list():
            self._hear(name_of(obj), obj)

    async def stop(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
        await self.registry.stop()

    def status_changed(self, name: str) -> None:
        """Have the status of the object written; what changes while that is done is written with it, or once more."""
        self._unwritten[name] = None
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
        status = self._status_of(name)
        if current is None or status is None:
            return
        obj = current.parse()
        if obj.get("status") != status:
            await self.registry.replace(current, obj | {"status": status})

"""A kind of the test bench: its endpoints, the status updates of its owner, and the store that calls the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

import orjson

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.delegating import DelegatingStore
from pilothouse.apiserver.storage.errors import KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import Entry, Revision, Store
from pilothouse.extensions.customresources.model import CustomResource
from pilothouse.extensions.customresources.version_endpoints import api_versions, open_registry
from pilothouse.machinery.objects import Json, name_of

_WRITE_DELAY: Final = 0.05
"""Seconds to collect status changes before a write; a read flushes them earlier."""

Hear: TypeAlias = Callable[[str, Json | None], Awaitable[None]]
"""Called with the name of a written object, and the object (None: deleted). The write is acknowledged when the call
returns."""


class Owner(Protocol):
    """Implements the behavior of one kind."""

    kind: ServedKind
    """Set by ServedKind; the owner reports changed objects to it."""

    async def hear(self, name: str, obj: Json | None) -> None:
        """Handle a written object (None: deleted). The write is acknowledged when this returns."""

    def revised(self, name: str, obj: Json) -> Json | None:
        """Return the updated object, mainly its status; None for no change."""

    async def about_to_be_read(self) -> None:
        """Prepare for a read: report pending changes."""


class ServedKind:
    """Serves one kind. The owner gets every existing object at the start, then each write before its
    acknowledgement.
    """

    def __init__(self, resource: CustomResource, store: Store, *, root: str, owner: Owner) -> None:
        self.resource = resource
        self.registry = open_registry(resource, ObservedStore(store, owner.hear), root=root)
        self.access = OwnAccess(self.registry)
        self._owner = owner
        self._pending: dict[str, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        owner.kind = self

    @property
    def served(self) -> list[ServedResource]:
        """Endpoints of the kind and of its status."""
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
        """Schedule an update of the object."""
        self._pending[name] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_WRITE_DELAY, self._start_writing)

    async def flush(self) -> None:
        """Write all pending updates."""
        await self._owner.about_to_be_read()
        while self._pending or (self._writing is not None and not self._writing.done()):
            self._start_writing()
            assert self._writing is not None
            await asyncio.shield(self._writing)

    def _start_writing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name=f"status of {self.resource.plural}")

    async def _write(self) -> None:
        while self._pending:
            name = next(iter(self._pending))
            del self._pending[name]
            try:
                await self._write_one(name)
            except RevisionConflict:
                self._pending[name] = None
            except KeyNotFound:
                continue  # deleted meanwhile

    async def _write_one(self, name: str) -> None:
        current = await self.registry.newest("", name)
        if current is None:
            return
        obj = current.parse()
        revised = self._owner.revised(name, obj)
        if revised is not None and revised != obj:
            await self.registry.replace(current, revised)


class ObservedStore(DelegatingStore):
    """A store of one cluster-scoped resource that calls a listener before a write is acknowledged."""

    def __init__(self, store: Store, hear: Hear) -> None:
        super().__init__(store)
        self._hear = hear

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        entry = await super().create(key, value, ttl=ttl)
        await self._hear(_name(key), orjson.loads(value))
        return entry

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        entry = await super().update(key, value, expected=expected, ttl=ttl)
        await self._hear(_name(key), orjson.loads(value))
        return entry

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        entry = await super().delete(key, expected=expected)
        await self._hear(_name(key), None)
        return entry


def _name(key: str) -> str:
    return key.rpartition("/")[2]

"""Storages over a registry: a subclass overrides some verbs and delegates the others. A subresource such as status
represents the whole object under another strategy.
"""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.registry import operations
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.objects import Json


class BareView:
    """Has only the verbs that a subclass adds."""

    def __init__(self, registry: RegistryStore) -> None:
        self.registry = registry

    @property
    def resource(self) -> Resource:
        return self.registry.resource

    @property
    def reset_fields(self) -> tuple[str, ...]:
        return self.registry.reset_fields


class OneByOneView(BareView):
    """Delegates every verb except deletecollection to its registry."""

    async def get(self, ctx: operations.RequestContext, name: str, options: GetOptions) -> StoredObject:
        return await self.registry.get(ctx, name, options)

    async def list(self, ctx: operations.RequestContext, options: ListOptions) -> operations.ListResult:
        return await self.registry.list(ctx, options)

    async def watch(self, ctx: operations.RequestContext, options: ListOptions, *, deadline: float) -> CacheWatcher:
        return await self.registry.watch(ctx, options, deadline=deadline)

    async def create(
        self, ctx: operations.RequestContext, obj: Json, *, options: WriteOptions, validate: operations.Validate
    ) -> operations.Result:
        return await self.registry.create(ctx, obj, options=options, validate=validate)

    async def update(
        self, ctx: operations.RequestContext, name: str, update: operations.UpdateRequest
    ) -> operations.Updated:
        return await self.registry.update(ctx, name, update)

    async def delete(
        self, ctx: operations.RequestContext, name: str, *, options: DeleteOptions, validate: operations.Validate
    ) -> operations.Deleted:
        return await self.registry.delete(ctx, name, options=options, validate=validate)


class RegistryView(OneByOneView):
    """Delegates every verb to its registry."""

    async def delete_collection(
        self,
        ctx: operations.RequestContext,
        *,
        options: DeleteOptions,
        selection: ListOptions,
        validate: operations.Validate,
    ) -> operations.ListResult:
        return await self.registry.delete_collection(ctx, options=options, selection=selection, validate=validate)


class UpdateOnly:
    """A storage with the verb update only. An apply creates a missing object only with `may_be_applied`."""

    def __init__(self, registry: RegistryStore, strategy: Strategy, *, may_be_applied: bool = False) -> None:
        self._view = registry.with_strategy(strategy)
        self._may_be_applied = may_be_applied
        self.reset_fields = strategy.reset_fields

    async def update(
        self, ctx: operations.RequestContext, name: str, update: operations.UpdateRequest
    ) -> operations.Updated:
        allow_create = self._may_be_applied and update.force_allow_create
        return await self._view.update(ctx, name, replace(update, force_allow_create=allow_create))


class StatusStore(UpdateOnly):
    """The status subresource: read, update and patch.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from pilothouse.apiserver import Names, RegistryStore, Resource, SqliteStore, StatusStore, Strategy
    >>> class FlunderStatusStrategy(Strategy):
    ...     reset_fields = ("spec",)
    >>> store = await SqliteStore.open(Path(mkdtemp()))
    >>> registry = RegistryStore(Resource(Names("flunders", "Flunder"), Strategy(), "wardle.example.com"), store)
    >>> StatusStore(registry, FlunderStatusStrategy()).reset_fields
    ('spec',)
    >>> await store.close()
    """

    async def get(self, ctx: operations.RequestContext, name: str, options: GetOptions) -> operations.Result:
        return await self._view.get(ctx, name, options)

"""Base classes of storages over a registry: a subclass overrides some verbs and delegates the others."""

from __future__ import annotations

from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.operations import Deleted, ListResult, Result, Updated, UpdateRequest, Validate
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
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

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> StoredObject:
        return await self.registry.get(ctx, name, options)

    async def list(self, ctx: RequestContext, options: ListOptions) -> ListResult:
        return await self.registry.list(ctx, options)

    async def watch(self, ctx: RequestContext, options: ListOptions, *, deadline: float) -> CacheWatcher:
        return await self.registry.watch(ctx, options, deadline=deadline)

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        return await self.registry.create(ctx, obj, options=options, validate=validate)

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        return await self.registry.update(ctx, name, update)

    async def delete(self, ctx: RequestContext, name: str, *, options: DeleteOptions, validate: Validate) -> Deleted:
        return await self.registry.delete(ctx, name, options=options, validate=validate)


class RegistryView(OneByOneView):
    """Delegates every verb to its registry."""

    async def delete_collection(
        self, ctx: RequestContext, *, options: DeleteOptions, selection: ListOptions, validate: Validate
    ) -> ListResult:
        return await self.registry.delete_collection(ctx, options=options, selection=selection, validate=validate)

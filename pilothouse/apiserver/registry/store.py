"""The generic registry store: every verb of a resource, over its strategy, the store and the watch cache.

Three things have like names: a `Store` keeps bytes by key (apiserver/storage/interface.py), an `ObjectStore` keeps the
objects of one resource in a Store, and a `RegistryStore` does the verbs of the resource by its rules. Whatever has
verbs that the installer can serve is a storage (registry/interface.py).

Reads come from the watch cache, which asks the store for what it has no longer.
Writes are read-check-write on the store itself and are tried again when somebody else was faster.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from pilothouse.apiserver.registry import creating, deleting, listing, updating
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.hooks import NO_HOOKS, Hooks
from pilothouse.apiserver.registry.operations import Deleted, ListResult, Result, Updated, UpdateRequest, Validate
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.registry.resource_version import parse_resource_version
from pilothouse.apiserver.registry.stored_resource import StoredResource
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json


class RegistryStore(StoredResource):
    """One resource with its rules: upstream's genericregistry.Store. It is a storage that the installer takes, as are
    its views: subresources such as status, which follow another strategy, and what `OneByOneView` is made for.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from pilothouse.apiserver import Names, RegistryStore, Resource, SqliteStore, Strategy
    >>> store = await SqliteStore.open(Path(mkdtemp()))
    >>> registry = RegistryStore(Resource(Names("flunders", "Flunder"), Strategy(), "wardle.example.com"), store)
    >>> await registry.start()
    >>> await registry.wait_ready()
    >>> await registry.stop()
    >>> await store.close()
    """

    hooks: Hooks = NO_HOOKS

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> StoredObject:
        """Raises NotFound."""
        key = self.keys.object(ctx.namespace, name)
        version = options.resource_version
        with translated(ctx.resource, name, has_watch_cache=self.resource.has_watch_cache):
            found = await self.cacher.get(key, not_older_than=parse_resource_version(version) if version else None)
        if found is None:
            raise NotFound.of(ctx.resource, name)
        return found

    async def list(self, ctx: RequestContext, options: ListOptions) -> ListResult:
        return await listing.list_objects(self, ctx, options)

    async def watch(self, ctx: RequestContext, options: ListOptions, *, deadline: float) -> CacheWatcher:
        return await listing.watch_objects(self, ctx, options, deadline=deadline)

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        return await creating.create(self, ctx, obj, options=options, validate=validate)

    async def update(self, ctx: RequestContext, name: str, update: UpdateRequest) -> Updated:
        return await updating.Update(self, ctx, name, update).run()

    async def delete(self, ctx: RequestContext, name: str, *, options: DeleteOptions, validate: Validate) -> Deleted:
        return await deleting.delete(self, ctx, name, options=options, validate=validate)

    async def delete_collection(
        self, ctx: RequestContext, *, options: DeleteOptions, selection: ListOptions, validate: Validate
    ) -> ListResult:
        """Not atomic, as upstream: what was deleted before an error stays deleted."""
        found = await self.list(ctx, replace(selection, watch=False))
        await deleting.delete_all(self, ctx, found.objects, options=options, validate=validate)
        return found

    @property
    def reset_fields(self) -> tuple[str, ...]:
        return self.strategy.reset_fields

    def with_strategy(self, strategy: Strategy) -> RegistryStore:
        """The same objects under other rules: how a status subresource is made."""
        return self._view(strategy, self.hooks)

    def with_hooks(self, hooks: Hooks) -> RegistryStore:
        """The same objects with other things done around their writes."""
        return self._view(self.strategy, hooks)

    def _view(self, strategy: Strategy, hooks: Hooks) -> RegistryStore:
        # As upstream copies the struct: a view shares the objects and the watch cache, and has rules of its own.
        view = copy(self)
        view.strategy, view.hooks = strategy, hooks
        return view

"""The generic registry store: every verb of a resource, over its strategy, the store and the watch cache.

Similar names: a `Store` maps keys to bytes (apiserver/storage/interface.py). An `ObjectStore` holds the objects of one
resource in a Store. A `RegistryStore` implements the verbs of the resource by its strategy. A storage is any object
with verbs that the installer can serve (registry/interface.py).

Reads come from the watch cache, which falls back to the store. Writes read, check and write in the store itself, and
are retried on conflict.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from pilothouse.apiserver.registry import creating, deleting, listing, operations, updating
from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.options import DeleteOptions, GetOptions, ListOptions, WriteOptions
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.resource_version import parse_resource_version
from pilothouse.apiserver.registry.stored_resource import StoredResource
from pilothouse.apiserver.registry.strategy import NO_HOOKS, Hooks, Strategy
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json


class RegistryStore(StoredResource):
    """One resource with its rules: upstream's genericregistry.Store.

    A RegistryStore is a storage, and so are its views: subresources with another strategy, such as status, and
    `OneByOneView`.

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

    async def get(self, ctx: operations.RequestContext, name: str, options: GetOptions) -> StoredObject:
        """Raises NotFound."""
        key = self.keys.object(ctx.namespace, name)
        version = options.resource_version
        with map_storage_errors(ctx.resource, name, has_watch_cache=self.resource.has_watch_cache):
            found = await self.cacher.get(key, not_older_than=parse_resource_version(version) if version else None)
        if found is None:
            raise NotFound.of(ctx.resource, name)
        return found

    async def list(self, ctx: operations.RequestContext, options: ListOptions) -> operations.ListResult:
        return await listing.list_objects(self, ctx, options)

    async def watch(self, ctx: operations.RequestContext, options: ListOptions, *, deadline: float) -> CacheWatcher:
        return await listing.watch_objects(self, ctx, options, deadline=deadline)

    async def create(
        self, ctx: operations.RequestContext, obj: Json, *, options: WriteOptions, validate: operations.Validate
    ) -> operations.Result:
        return await creating.create(self, ctx, obj, options=options, validate=validate)

    async def update(
        self, ctx: operations.RequestContext, name: str, update: operations.UpdateRequest
    ) -> operations.Updated:
        return await updating.Update(self, ctx, name, update).run()

    async def delete(
        self, ctx: operations.RequestContext, name: str, *, options: DeleteOptions, validate: operations.Validate
    ) -> operations.Deleted:
        return await deleting.delete(self, ctx, name, options=options, validate=validate)

    async def delete_collection(
        self,
        ctx: operations.RequestContext,
        *,
        options: DeleteOptions,
        selection: ListOptions,
        validate: operations.Validate,
    ) -> operations.ListResult:
        """Delete all selected objects. Not atomic, as upstream: an error leaves earlier deletes in effect.

        Upstream lists the objects in pages, so a resourceVersion without a match selects exactly that revision.
        """
        is_exact = selection.resource_version not in ("", "0") and not selection.resource_version_match
        match = "Exact" if is_exact and not selection.continue_token else selection.resource_version_match
        found = await self.list(ctx, replace(selection, watch=False, resource_version_match=match))
        for stored in found.objects[:1]:
            self.keys.object(ctx.namespace, self.keys.names(stored.key)[1])  # refuse a missing namespace
        await deleting.delete_all(self, ctx, found.objects, options=options, validate=validate)
        return found

    @property
    def reset_fields(self) -> tuple[str, ...]:
        return self.strategy.reset_fields

    def with_strategy(self, strategy: Strategy) -> RegistryStore:
        """Return a view of the same objects with another strategy, such as the status subresource."""
        return self._view(strategy, self.hooks)

    def with_resource(self, resource: Resource) -> RegistryStore:
        """Return a view of the same objects with another declaration of the resource."""
        view = self._view(resource.strategy, self.hooks)
        view.resource = resource
        return view

    def with_hooks(self, hooks: Hooks) -> RegistryStore:
        """Return a view of the same objects with other hooks."""
        return self._view(self.strategy, hooks)

    def _view(self, strategy: Strategy, hooks: Hooks) -> RegistryStore:
        # Upstream copies the struct, too: a view shares the objects and the watch cache.
        view = copy(self)
        view.strategy, view.hooks = strategy, hooks
        return view

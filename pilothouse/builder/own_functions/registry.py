"""Objects that live in the author's own functions, as a resource that can be served.

class Books:                                    # only `list`: read, listed and watched
    async def list(self, namespace):
        return [{"metadata": {"name": isbn}, "spec": {"title": title}} for isbn, title in await rows()]

books = own_registry(BOOKS, store, Books(), root="/registry")
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.errors import translated
from pilothouse.apiserver.registry.operations import ListResult
from pilothouse.apiserver.registry.options import GetOptions, ListOptions
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.registry.stored_resource import keys_of
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Store
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.apiserver.storage.views import store_of
from pilothouse.builder.own_functions.answers import AnswerReader
from pilothouse.builder.own_functions.following import Following
from pilothouse.builder.own_functions.functions import Functions
from pilothouse.builder.own_functions.mirror import Mirror
from pilothouse.builder.own_functions.storage import OwnStorage, storage_type
from pilothouse.builder.own_functions.write_through import WriteThroughStore
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_NEWEST_OR_ANY = ("", "0")


class MirroredRegistry(RegistryStore):
    """Asks the author before it reads the mirror; so do its views (status). A past state is read as it was."""

    def __init__(
        self,
        resource: Resource,
        mirror: Mirror,
        *,
        root: str,
        on_read: Callable[[Json], None] | None,
        poll_interval: float,
    ) -> None:
        super().__init__(resource, WriteThroughStore(mirror), root=root, on_read=on_read)
        self._mirror = mirror
        self._following = Following(mirror, is_watched=lambda: self.watcher_count > 0, interval=poll_interval)

    async def start(self) -> None:
        await super().start()
        self._following.start()

    async def stop(self) -> None:
        await self._following.stop()
        await super().stop()

    async def get(self, ctx: RequestContext, name: str, options: GetOptions) -> StoredObject:
        with translated(ctx.resource, name):
            await self._mirror.refresh_one(self._namespace(ctx), name)
        return await super().get(ctx, name, options)

    async def list(self, ctx: RequestContext, options: ListOptions) -> ListResult:
        if options.resource_version in _NEWEST_OR_ANY and not options.continue_token:
            await self._refresh(ctx)
        return await super().list(ctx, options)

    async def watch(self, ctx: RequestContext, options: ListOptions, *, deadline: float) -> CacheWatcher:
        if options.resource_version in _NEWEST_OR_ANY and options.send_initial_events is not False:
            await self._refresh(ctx)
        return await super().watch(ctx, options, deadline=deadline)

    async def _refresh(self, ctx: RequestContext) -> None:
        with translated(ctx.resource):
            await self._mirror.refresh(self._namespace(ctx))

    def _namespace(self, ctx: RequestContext) -> str:
        return ctx.namespace if self.keys.namespaced else ""


@dataclass(frozen=True, slots=True)
class OwnRegistry:
    """One resource of an author. `registry` is started and stopped, and subresources are made from it, as of any."""

    registry: MirroredRegistry
    mirror: Mirror

    @property
    def storage(self) -> OwnStorage:
        """For the installer: the resource itself, with the verbs that the functions allow."""
        return self.storage_of(self.registry)

    def storage_of(self, view: RegistryStore) -> OwnStorage:
        """The same for a view of the registry (`with_strategy`)."""
        return storage_type(self.mirror.functions.given)(view)


def own_registry(
    resource: Resource,
    store: Store,
    functions: object,
    *,
    root: str = DEFAULT_ROOT,
    on_read: Callable[[Json], None] | None = None,
    poll_interval: float = 1.0,
) -> OwnRegistry:
    """The objects of the resource live in `functions`, an object with some of

        async get(name, namespace)      the object; None, or raises NotFound, where there is none
        async list(namespace)           those of one namespace, of all for ""; needed to be listed and watched
        async create(obj), update(obj)  the object as it is now, or None: as it was given
        async delete(name, namespace)
        watch()                         an async iterator: an object, or a pair (type, object), says that this one
                                        may have changed, anything else that any may have

    Objects are JSON objects with metadata.name, and metadata.namespace where the resource is namespaced. Metadata that
    the author does not keep is kept in `store`, under `root`, which also gives each change its resourceVersion.
    While somebody watches, and there is no `watch`, `list` is called every `poll_interval` seconds.
    Raises TypeError when `functions` has neither get nor list.
    """
    reader = AnswerReader(resource, keys_of(resource, root), on_read)
    mirror = Mirror(store_of(store, resource.group_resource), Functions(functions, reader))
    registry = MirroredRegistry(resource, mirror, root=root, on_read=on_read, poll_interval=poll_interval)
    return OwnRegistry(registry, mirror)

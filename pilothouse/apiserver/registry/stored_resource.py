"""The stored objects of one resource as the server's own parts see them: past every rule and every verb.

    known …     what the watch cache has: costs no access to the store, and may be a moment behind it
    newest …    what the store has now
    replace     read-check-write for those who do their own checks

They raise StorageErrors (`registry/errors.py` translates them), and BadRequest for names that nothing can have.
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.apiserver.registry.interface import Result
from pilothouse.apiserver.registry.keys import Keys
from pilothouse.apiserver.registry.object_store import ObjectStore
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.storage.cacher.cacher import Cacher
from pilothouse.apiserver.storage.cacher.events import Predicate
from pilothouse.apiserver.storage.cacher.pages import CachedPage
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Revision, Store
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.apiserver.storage.views import store_of
from pilothouse.machinery.objects import Json


class StoredResource:
    """`objects` and `cacher` are for the modules of this package; everybody else goes by the methods."""

    def __init__(
        self,
        resource: Resource,
        store: Store,
        *,
        root: str = DEFAULT_ROOT,
        empty: Callable[[], Json] = dict,
        on_read: Callable[[Json], None] | None = None,
    ) -> None:
        """`empty` makes what an object of the kind has when nothing is set in it; `on_read` as in ObjectCodec."""
        self.resource = resource
        self.keys = Keys(f"{root}/{resource.storage_path or resource.names.plural}/", resource.namespaced)
        group_resource = resource.group_resource
        store = store_of(store, group_resource)
        codec = ObjectCodec(resource.names.kind, resource.kind.api_version, resource.fields_of, empty, on_read)
        self.objects = ObjectStore(store, codec, group_resource)
        self.cacher = Cacher(store, self.keys.prefix, codec, resource=group_resource, trigger=resource.trigger_field)

    async def start(self) -> None:
        """Begins to fill the watch cache. Requests may come at once; they wait for a moment."""
        await self.cacher.start()

    async def wait_ready(self) -> None:
        """Returns when the watch cache is filled. Raises NotReady when it is stopped before."""
        await self.cacher.wait_ready()

    async def stop(self) -> None:
        """Ends all watches. Lists and watches are refused from now on."""
        await self.cacher.stop()

    async def known(self, namespace: str, name: str) -> StoredObject | None:
        return await self.cacher.get(self.keys.object(namespace, name), not_older_than=0)

    async def newest(self, namespace: str, name: str) -> StoredObject | None:
        return await self.objects.get(self.keys.object(namespace, name))

    async def known_or_newest(self, namespace: str, name: str) -> StoredObject | None:
        """As far as the cache knows; the store is asked about one that the cache does not have."""
        return await self.known(namespace, name) or await self.newest(namespace, name)

    async def list_known(self, namespace: str = "", *, matches: Predicate | None = None) -> CachedPage:
        """Those of all namespaces, unless one is named."""
        return await self.cacher.list(self.keys.collection(namespace), not_older_than=0, matches=matches)

    async def list_newest(self, namespace: str = "") -> CachedPage:
        return await self.cacher.list(self.keys.collection(namespace))

    async def watch_known(self, *, send_initial_events: bool) -> CacheWatcher:
        """Every change from now on, after all that is known where `send_initial_events` asks for it."""
        return await self.cacher.watch(self.keys.prefix, send_initial_events=send_initial_events)

    @property
    def ready(self) -> bool:
        """False while the watch cache is not yet filled, or has lost the store."""
        return self.cacher.ready

    @property
    def known_revision(self) -> Revision:
        """Every change up to it is known."""
        return self.cacher.revision

    @property
    def known_count(self) -> int:
        """How many objects are known."""
        return self.cacher.objects

    @property
    def watcher_count(self) -> int:
        return self.cacher.watchers

    async def replace(self, current: StoredObject, obj: Json, *, dry_run: bool = False) -> Result:
        """Writes `obj` over `current`. Raises RevisionConflict, KeyNotFound when that is no longer the newest."""
        return await self.objects.update(current, obj, ttl=0, dry_run=dry_run)

"""The stored objects of one resource for components of the server, without rules and verbs.

    known …     from the watch cache: no access to the store, possibly stale
    newest …    from the store
    replace     read-check-write for callers that check themselves

Methods raise StorageErrors (`registry/errors.py` maps them to API errors), and BadRequest for invalid names.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from pilothouse.apiserver.offload import Weight
from pilothouse.apiserver.registry.operations import Result
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.stored_form import Keys, codec_of
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.apiserver.storage.cacher.cacher import Cacher, cachers_of
from pilothouse.apiserver.storage.cacher.events import Predicate
from pilothouse.apiserver.storage.cacher.selection import CachedPage
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.delegating import store_of
from pilothouse.apiserver.storage.errors import KeyExists
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Entry, Revision, Store
from pilothouse.apiserver.storage.json_view import ProtobufStore
from pilothouse.apiserver.storage.metrics import RequestMetrics
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.apiserver.tracing.spans import SpanAttributes, audited, event, spanned
from pilothouse.machinery.codec.json import printed_numbers
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.printing import exact_copy


def keys_of(resource: Resource, root: str) -> Keys:
    """Return the keys of the resource in a store with this root."""
    return Keys(f"{root}/{resource.storage_path or resource.names.plural}/", resource.namespaced, root)


class ObjectStore:
    """Reads and writes single objects of one resource in a Store: upstream's DryRunnableStorage.

    A dry run returns the result and writes nothing. A write returns the object in the watch cache if the cache has it
    already: the encoded forms are then shared by the writer, all watchers and all readers.
    """

    def __init__(
        self, store: Store, codec: ObjectCodec, resource: GroupResource, held: Callable[[str], StoredObject | None]
    ) -> None:
        self._store = store
        self._codec = codec
        self._resource = resource
        self._held = held
        self._get = RequestMetrics("get", group=resource.group, resource=resource.resource)
        self._create = RequestMetrics("create", group=resource.group, resource=resource.resource)
        self._update = RequestMetrics("update", group=resource.group, resource=resource.resource)
        self._delete = RequestMetrics("delete", group=resource.group, resource=resource.resource)

    async def get(self, key: str) -> StoredObject | None:
        """Return the newest state from the store."""
        with self._get.measured():
            entry = await self._store.get(key)
        return None if entry is None else StoredObject(entry, self._codec)

    def stored(self, obj: Json) -> Json:
        """Return the object as the store would return it."""
        return self._codec.stored(obj)

    def _shown(self, obj: Json) -> Json:
        """Return the object as a response would show it after a write, which does not change the kind."""
        shown: Json = printed_numbers(self.stored(obj))
        rest = {key: value for key, value in shown.items() if key not in ("kind", "apiVersion")}
        whole = {"kind": self._codec.kind, "apiVersion": self._codec.api_version, **rest}
        if self._codec.on_read is not None:
            whole = deepcopy(whole)
            self._codec.on_read(whole)
        return whole

    def copy_of(self, obj: Json) -> Json:
        """Return an exact copy of an object before it is stored."""
        return exact_copy(obj, self._codec.stored) if self._codec.raw is None else deepcopy(obj)

    @spanned("Create etcd3", lambda self, key, obj, **_: self._of_create(key, obj))
    async def create(self, key: str, obj: Json, *, ttl: int, dry_run: bool, weight: Weight) -> Result:
        """Raises KeyExists."""
        if dry_run:
            if await self._store.get(key) is not None:
                raise KeyExists(key)
            return await weight.run(self._shown, obj)
        data = await weight.run(self._encoded, obj)
        with self._create.measured():
            entry = await self._store.create(key, data, ttl=ttl)
        event("Txn call succeeded")
        return self._written(entry)

    async def update(self, current: StoredObject, obj: Json, *, ttl: int, dry_run: bool, weight: Weight) -> Result:
        """Replace the object. A dry run returns the object at its current revision. Raises RevisionConflict,
        KeyNotFound."""
        if dry_run:
            return await weight.run(self._shown, obj)
        data = await weight.run(self._encoded, obj)
        with self._update.measured():
            entry = await self._store.update(current.key, data, expected=current.revision, ttl=ttl)
        event("Transaction committed")
        return self._written(entry)

    def _written(self, entry: Entry) -> StoredObject:
        held = self._held(entry.key)
        if held is not None and held.revision == entry.modified:
            return held
        return StoredObject(entry, self._codec)

    async def delete(self, current: StoredObject, *, dry_run: bool) -> StoredObject:
        """Delete the object and return its last state at the revision of the delete. Raises RevisionConflict,
        KeyNotFound."""
        if dry_run:
            return current
        with self._delete.measured():
            return StoredObject(await self._store.delete(current.key, expected=current.revision), self._codec)

    def _encoded(self, obj: Json) -> bytes:
        event("About to Encode")
        data = self._codec.encode(obj)
        event("Encode succeeded", {"len": len(data)})
        return data

    def _of_create(self, key: str, obj: Json) -> SpanAttributes:
        of = {"key": key, "type": str(obj.get("kind", "")), "group": self._resource.group}
        return audited({**of, "resource": self._resource.resource})


class StoredResource:
    """`objects` and `cacher` are internal to this package; other packages use the methods."""

    def __init__(
        self,
        resource: Resource,
        store: Store,
        *,
        root: str = DEFAULT_ROOT,
        empty: Callable[[], Json] = dict,
        on_read: Callable[[Json], None] | None = None,
    ) -> None:
        """`empty` returns the zero value of the kind; `on_read` as in ObjectCodec."""
        self.resource = resource
        self.strategy: Strategy = resource.strategy
        """The strategy of writes; views of the resource may have another one."""
        self.keys = keys_of(resource, root)
        group_resource = resource.group_resource
        whole_store, store = store, ProtobufStore(store_of(store, group_resource), self.strategy.complete_stored)
        codec = codec_of(resource, empty, on_read)
        self.cacher = Cacher(
            store, self.keys.prefix, codec, resource=group_resource, indexed_fields=resource.indexed_fields
        )
        self.objects = ObjectStore(store, codec, group_resource, self.cacher.held)
        cachers_of(whole_store).add(self.cacher)

    async def start(self) -> None:
        """Start to fill the watch cache. Requests that arrive earlier wait for a short time."""
        await self.cacher.start()

    async def wait_ready(self) -> None:
        """Return when the watch cache is filled. Raises CacheNotReady if the cache is stopped first."""
        await self.cacher.wait_ready()

    async def stop(self) -> None:
        """End all watches. Later lists and watches are rejected."""
        await self.cacher.stop()

    async def known(self, namespace: str, name: str) -> StoredObject | None:
        return await self.cacher.get(self.keys.object(namespace, name), not_older_than=0)

    async def newest(self, namespace: str, name: str) -> StoredObject | None:
        return await self.objects.get(self.keys.object(namespace, name))

    async def known_or_newest(self, namespace: str, name: str) -> StoredObject | None:
        """Return the cached object; ask the store if the cache does not have the object."""
        return await self.known(namespace, name) or await self.newest(namespace, name)

    async def list_known(self, namespace: str = "", *, matches: Predicate | None = None) -> CachedPage:
        """Return the known objects of the namespace, or of all namespaces."""
        return await self.cacher.list(self.keys.collection(namespace), not_older_than=0, matches=matches)

    async def list_newest(self, namespace: str = "") -> CachedPage:
        return await self.cacher.list(self.keys.collection(namespace))

    async def watch_known(self, *, send_initial_events: bool) -> CacheWatcher:
        """Watch all changes from now on; with `send_initial_events`, after all known objects."""
        return await self.cacher.watch(self.keys.prefix, send_initial_events=send_initial_events)

    @property
    def ready(self) -> bool:
        """False until the watch cache is filled, and while the store is lost."""
        return self.cacher.ready

    @property
    def known_revision(self) -> Revision:
        """The revision up to which all changes are known."""
        return self.cacher.revision

    @property
    def known_count(self) -> int:
        """Number of known objects."""
        return self.cacher.objects

    @property
    def watcher_count(self) -> int:
        return self.cacher.watchers

    async def replace(self, current: StoredObject, obj: Json, *, dry_run: bool = False) -> Result:
        """Replace `current` by `obj`. Raises RevisionConflict or KeyNotFound if `current` is not the newest state."""
        return await self.objects.update(current, obj, ttl=0, dry_run=dry_run, weight=Weight(bytes=current.size))

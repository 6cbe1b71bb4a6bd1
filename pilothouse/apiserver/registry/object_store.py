"""Reading and writing single objects under the registry, for real or as a dry run that writes nothing."""

from __future__ import annotations

from pilothouse.apiserver.registry.interface import Result
from pilothouse.apiserver.storage.errors import KeyExists
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.metrics import RequestMetrics
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json


class ObjectStore:
    """The objects of one resource, in a Store of keys and bytes: upstream's DryRunnableStorage."""

    def __init__(self, store: Store, codec: ObjectCodec, resource: GroupResource) -> None:
        self._store = store
        self._codec = codec
        self._get = RequestMetrics("get", group=resource.group, resource=resource.resource)
        self._create = RequestMetrics("create", group=resource.group, resource=resource.resource)
        self._update = RequestMetrics("update", group=resource.group, resource=resource.resource)
        self._delete = RequestMetrics("delete", group=resource.group, resource=resource.resource)

    async def get(self, key: str) -> StoredObject | None:
        """The newest state, read from the store itself."""
        with self._get.measured():
            entry = await self._store.get(key)
        return None if entry is None else StoredObject(entry, self._codec)

    async def create(self, key: str, obj: Json, *, ttl: int, dry_run: bool) -> Result:
        """Raises KeyExists."""
        if dry_run:
            if await self._store.get(key) is not None:
                raise KeyExists(key)
            return obj
        with self._create.measured():
            entry = await self._store.create(key, self._codec.encode(obj), ttl=ttl)
        return StoredObject(entry, self._codec)

    async def update(self, current: StoredObject, obj: Json, *, ttl: int, dry_run: bool) -> Result:
        """Raises RevisionConflict, KeyNotFound. A dry run shows the object at the revision it has."""
        if dry_run:
            return obj
        with self._update.measured():
            entry = await self._store.update(current.key, self._codec.encode(obj), expected=current.revision, ttl=ttl)
        return StoredObject(entry, self._codec)

    async def delete(self, current: StoredObject, *, dry_run: bool) -> StoredObject:
        """Raises RevisionConflict, KeyNotFound. The last state, at the revision of the delete."""
        if dry_run:
            return current
        with self._delete.measured():
            return StoredObject(await self._store.delete(current.key, expected=current.revision), self._codec)

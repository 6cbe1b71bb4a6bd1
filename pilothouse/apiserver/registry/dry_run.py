"""Reading and writing single objects under the registry, for real or as a dry run that writes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pilothouse.apiserver.registry.interface import Result
from pilothouse.apiserver.storage.errors import KeyExists
from pilothouse.apiserver.storage.interface import Store
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class DryRunnableStorage:
    store: Store
    codec: ObjectCodec

    async def get(self, key: str) -> StoredObject | None:
        """The newest state, read from the store itself."""
        entry = await self.store.get(key)
        return None if entry is None else StoredObject(entry, self.codec)

    async def create(self, key: str, obj: Json, *, ttl: int, dry_run: bool) -> Result:
        """Raises KeyExists."""
        if dry_run:
            if await self.store.get(key) is not None:
                raise KeyExists(key)
            return obj
        entry = await self.store.create(key, self.codec.encode(obj), ttl=ttl)
        return StoredObject(entry, self.codec)

    async def update(self, current: StoredObject, obj: Json, *, ttl: int, dry_run: bool) -> Result:
        """Raises RevisionConflict, KeyNotFound. A dry run shows the object at the revision it has."""
        if dry_run:
            return obj
        entry = await self.store.update(current.key, self.codec.encode(obj), expected=current.revision, ttl=ttl)
        return StoredObject(entry, self.codec)

    async def delete(self, current: StoredObject, *, dry_run: bool) -> StoredObject:
        """Raises RevisionConflict, KeyNotFound. The last state, at the revision of the delete."""
        if dry_run:
            return current
        return StoredObject(await self.store.delete(current.key, expected=current.revision), self.codec)

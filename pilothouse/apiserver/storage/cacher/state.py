"""The objects of one resource as the newest known revision left them, in key order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sortedcontainers import SortedDict

from pilothouse.apiserver.storage.cacher.events import CacheChange
from pilothouse.apiserver.storage.cacher.pages import CachedPage, CacheKeyRange, ListSelection, select
from pilothouse.apiserver.storage.interface import Entry, Event, Revision
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject


class CacheState:
    _objects: dict[str, StoredObject]  # a SortedDict; typed as what it is used for most

    def __init__(self, codec: ObjectCodec) -> None:
        self._codec = codec
        self.changes = 0
        """How often anything changed: as long as it is the same, so are the objects."""
        self.replace(())

    def __len__(self) -> int:
        return len(self._objects)

    def replace(self, entries: Iterable[Entry]) -> None:
        self._sorted = SortedDict((entry.key, StoredObject(entry, self._codec)) for entry in entries)
        self._objects = self._sorted
        self.get = self._objects.get
        self.changes += 1

    def apply(self, event: Event, now: float) -> CacheChange | None:
        """Takes one change in. None: the deletion of something that was not there."""
        previous = self._objects.get(event.key)
        current = None
        if event.entry is not None:
            current = self._objects[event.key] = StoredObject(event.entry, self._codec)
        elif previous is not None:
            del self._objects[event.key]
        else:
            return None
        self.changes += 1
        return CacheChange(event.revision, event.key, current, previous, now)

    def objects(self, keys: CacheKeyRange, *, limit: int = 0) -> list[StoredObject]:
        positions = self._positions(keys)
        if limit > 0:
            positions = positions[:limit]
        objects = self._objects
        return [objects[key] for key in self._sorted.islice(positions.start, positions.stop)]

    async def page(self, selection: ListSelection, revision: Revision) -> CachedPage:
        keys, limit = selection.keys, selection.limit
        if selection.matches is not None:
            return await select(self.objects(keys), matches=selection.matches, limit=limit, revision=revision)
        objects = self.objects(keys, limit=limit)
        return CachedPage(objects, revision, self.count(keys) - len(objects) if limit > 0 else 0)

    async def page_before(
        self, changes: Sequence[CacheChange], selection: ListSelection, revision: Revision
    ) -> CachedPage:
        """The page as it was before `changes`, which lead from `revision` to the present, were made."""
        keys = selection.keys
        undone = {change.key: change.previous for change in reversed(changes) if change.key in keys}
        if not undone:
            return await self.page(selection, revision)
        objects = [obj for obj in self.objects(keys) if obj.key not in undone]
        objects += [obj for obj in undone.values() if obj is not None]
        objects.sort(key=lambda obj: obj.key)
        matches = selection.matches or (lambda _: True)
        return await select(objects, matches=matches, limit=selection.limit, revision=revision)

    def count(self, keys: CacheKeyRange) -> int:
        return len(self._positions(keys))

    def _positions(self, keys: CacheKeyRange) -> range:
        """Return the positions of the keys in the range; a slice made with them never reaches beyond it."""
        first: int = self._sorted.bisect_left(keys.first)
        return range(first, max(first, self._sorted.bisect_left(keys.end)))

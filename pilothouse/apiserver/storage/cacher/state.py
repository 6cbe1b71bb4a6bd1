"""The objects of one resource as the newest known revision left them, in key order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sortedcontainers import SortedDict

from pilothouse.apiserver.storage.cacher.clock import CacheClock
from pilothouse.apiserver.storage.cacher.events import CacheChange
from pilothouse.apiserver.storage.cacher.indexes import FEW, CacheIndexes, Candidates
from pilothouse.apiserver.storage.cacher.pages import CachedPage, CacheKeyRange, ListSelection, select
from pilothouse.apiserver.storage.interface import Entry, Event, Revision
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject

Undone: TypeAlias = Mapping[str, StoredObject | None]
"""What objects were, by their keys, before they became what they are; None where there was nothing."""


class CacheState:
    _objects: dict[str, StoredObject]  # a SortedDict; typed as what it is used for most

    def __init__(self, codec: ObjectCodec, clock: CacheClock, indexed_fields: Sequence[str]) -> None:
        self._codec = codec
        self.indexes = CacheIndexes(indexed_fields, clock, labels_unasked=codec.on_read is None)
        self.changes = 0
        """How often anything changed: as long as it is the same, so are the objects."""
        self.size = 0
        """Bytes of all objects as they are stored."""
        self.replace(())

    def __len__(self) -> int:
        return len(self._objects)

    def replace(self, entries: Iterable[Entry]) -> None:
        self._sorted = SortedDict((entry.key, StoredObject(entry, self._codec)) for entry in entries)
        self._objects = self._sorted
        self.size = sum(obj.size for obj in self._objects.values())
        self.get = self._objects.get
        self.indexes.restart(self._objects)
        self.changes += 1

    def apply(self, event: Event, now: float) -> CacheChange | None:
        """Takes one change in. None: the deletion of something that was not there."""
        previous = self._objects.get(event.key)
        current = None
        if event.entry is not None:
            current = self._objects[event.key] = StoredObject(event.entry, self._codec)
            self.size += current.size
        elif previous is not None:
            del self._objects[event.key]
        else:
            return None
        if previous is not None:
            self.size -= previous.size
        self.indexes.change(event.key, previous, current)
        self.changes += 1
        return CacheChange(event.revision, event.key, current, previous, now)

    def objects(self, keys: CacheKeyRange, *, limit: int = 0) -> list[StoredObject]:
        positions = self._positions(keys)
        if limit > 0:
            positions = positions[:limit]
        objects = self._objects
        return [objects[key] for key in self._sorted.islice(positions.start, positions.stop)]

    async def prepare(self, selection: ListSelection) -> None:
        """Waits for an index where `page` would have to look at many objects without it."""
        missing = self.indexes.missing(selection.matches)
        if missing and self.count(selection.keys) > FEW:
            found = self._candidates(selection)
            if found is None or len(found) > FEW:
                await self.indexes.wait_for(missing[0])

    async def page(self, selection: ListSelection, revision: Revision) -> CachedPage:
        keys, limit = selection.keys, selection.limit
        if selection.matches is None:
            objects = self.objects(keys, limit=limit)
            return CachedPage(objects, revision, self.count(keys) - len(objects) if limit > 0 else 0)
        found = self.indexes.candidates(selection.matches, keys)
        if found is None or not found.exact:
            return await self._select(found, selection, revision, {})
        objects = [self._objects[key] for key in found.take(limit)]
        full = 0 < limit == len(objects)
        rest = CacheKeyRange.of(selection.prefix, after=objects[-1].key) if full else None
        return CachedPage(objects, revision, self.count(rest) if rest else 0)

    async def page_before(
        self, changes: Sequence[CacheChange], selection: ListSelection, revision: Revision
    ) -> CachedPage:
        """The page as it was before `changes`, which lead from `revision` to the present, were made."""
        keys = selection.keys
        undone = {change.key: change.previous for change in reversed(changes) if change.key in keys}
        if not undone:
            return await self.page(selection, revision)
        # The indexes are those of the present; they are right for all objects that are as they were.
        return await self._select(self._candidates(selection), selection, revision, undone)

    def selectable(self, selection: ListSelection) -> list[StoredObject]:
        """Return all objects in the range that match, and maybe others."""
        return self._present(selection.keys, self._candidates(selection))

    def _candidates(self, selection: ListSelection) -> Candidates | None:
        return None if selection.matches is None else self.indexes.candidates(selection.matches, selection.keys)

    def _present(self, keys: CacheKeyRange, found: Candidates | None) -> list[StoredObject]:
        return self.objects(keys) if found is None else [self._objects[key] for key in found.take()]

    async def _select(
        self, found: Candidates | None, selection: ListSelection, revision: Revision, undone: Undone
    ) -> CachedPage:
        """Looks at the candidates, or at all, as they were, in turns with others: the state may change meanwhile."""
        keys, limit = selection.keys, selection.limit
        objects = _as_they_were(self._present(keys, found), undone)
        all_keys = (
            [obj.key for obj in _as_they_were(self.objects(keys), undone)] if found is not None and limit > 0 else []
        )
        page = await select(objects, matches=selection.matches or _all, limit=limit, revision=revision)
        if not all_keys or len(page.objects) < limit:
            return page
        return CachedPage(page.objects, revision, len(all_keys) - bisect_right(all_keys, page.objects[-1].key))

    def count(self, keys: CacheKeyRange) -> int:
        return len(self._positions(keys))

    def _positions(self, keys: CacheKeyRange) -> range:
        """Return the positions of the keys in the range; a slice made with them never reaches beyond it."""
        first: int = self._sorted.bisect_left(keys.first)
        return range(first, max(first, self._sorted.bisect_left(keys.end)))


def _as_they_were(present: list[StoredObject], undone: Undone) -> list[StoredObject]:
    if not undone:
        return present
    objects = [obj for obj in present if obj.key not in undone]
    objects += [obj for obj in undone.values() if obj is not None]
    objects.sort(key=lambda obj: obj.key)
    return objects


def _all(_: StoredObject) -> bool:
    return True

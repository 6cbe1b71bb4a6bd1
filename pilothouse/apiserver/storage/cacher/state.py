"""The current objects of one resource, in key order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sortedcontainers import SortedDict

from pilothouse.apiserver.storage.cacher.clock import CacheClock
from pilothouse.apiserver.storage.cacher.events import CacheChange
from pilothouse.apiserver.storage.cacher.indexes import FEW, CacheIndexes, Candidates
from pilothouse.apiserver.storage.cacher.selection import CachedPage, CacheKeyRange, ListSelection, select
from pilothouse.apiserver.storage.interface import Entry, Event, Revision
from pilothouse.apiserver.storage.object import ObjectCodec, StoredObject

Undone: TypeAlias = Mapping[str, StoredObject | None]
"""Key → earlier object; None = absent then."""


class CacheState:
    _objects: dict[str, StoredObject]  # a SortedDict, typed by its main use

    def __init__(self, codec: ObjectCodec, clock: CacheClock, indexed_fields: Sequence[str]) -> None:
        self._codec = codec
        self.indexes = CacheIndexes(indexed_fields, clock, labels_unasked=codec.on_read is None)
        self.changes = 0
        """Counter of changes; an equal counter means equal objects."""
        self.size = 0
        """Stored size of all objects in bytes."""
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
        """Apply an event; None for the deletion of an absent key."""
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
        """Wait for an index if `page` would otherwise scan many objects."""
        missing = self.indexes.missing(selection.matches)
        if missing and self.count(selection.keys) > FEW:
            candidates = self._candidates(selection)
            if candidates is None or len(candidates) > FEW:
                await self.indexes.wait_for(missing[0])

    async def page(self, selection: ListSelection, revision: Revision) -> CachedPage:
        keys, limit = selection.keys, selection.limit
        if selection.matches is None:
            objects = self.objects(keys, limit=limit)
            return CachedPage(objects, revision, self.count(keys) - len(objects) if limit > 0 else 0)
        candidates = self.indexes.candidates(selection.matches, keys)
        if candidates is None or not candidates.exact:
            return await self._select(candidates, selection, revision, {})
        objects = [self._objects[key] for key in candidates.take(limit)]
        full = 0 < limit == len(objects)
        rest = CacheKeyRange.of(selection.prefix, after=objects[-1].key) if full else None
        return CachedPage(objects, revision, self.count(rest) if rest else 0)

    async def page_before(
        self, changes: Sequence[CacheChange], selection: ListSelection, revision: Revision
    ) -> CachedPage:
        """Return the page before `changes`, which lead from `revision` to the present."""
        keys = selection.keys
        undone = {change.key: change.previous for change in reversed(changes) if change.key in keys}
        if not undone:
            return await self.page(selection, revision)
        # The indexes describe the present, which is right for all unchanged objects.
        return await self._select(self._candidates(selection), selection, revision, undone)

    def selectable(self, selection: ListSelection) -> list[StoredObject]:
        """Return a superset of the matching objects in the range."""
        return self._present(selection.keys, self._candidates(selection))

    def _candidates(self, selection: ListSelection) -> Candidates | None:
        return None if selection.matches is None else self.indexes.candidates(selection.matches, selection.keys)

    def _present(self, keys: CacheKeyRange, candidates: Candidates | None) -> list[StoredObject]:
        return self.objects(keys) if candidates is None else [self._objects[key] for key in candidates.take()]

    async def _select(
        self, candidates: Candidates | None, selection: ListSelection, revision: Revision, undone: Undone
    ) -> CachedPage:
        """Examine the candidates, or all objects, in their earlier state, yielding periodically; the state may change
        meanwhile."""
        keys, limit = selection.keys, selection.limit
        objects = _as_they_were(self._present(keys, candidates), undone)
        all_keys = (
            [obj.key for obj in _as_they_were(self.objects(keys), undone)]
            if candidates is not None and limit > 0
            else []
        )
        page = await select(objects, matches=selection.matches or _all, limit=limit, revision=revision)
        if not all_keys or len(page.objects) < limit:
            return page
        return CachedPage(page.objects, revision, len(all_keys) - bisect_right(all_keys, page.objects[-1].key))

    def count(self, keys: CacheKeyRange) -> int:
        return len(self._positions(keys))

    def _positions(self, keys: CacheKeyRange) -> range:
        """Return the positions of the range; slices made with them never exceed it."""
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

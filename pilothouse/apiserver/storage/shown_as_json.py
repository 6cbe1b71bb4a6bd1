"""A store that presents every value as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pilothouse.apiserver.storage.delegating import DelegatingStore, DelegatingWatch
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision, Store, Watch


class ShownAsJson(DelegatingStore, ABC):
    """Raises Undecodable for unreadable values, in addition to the errors of a store."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)

    async def get(self, key: str) -> Entry | None:
        found = await self._store.get(key)
        return None if found is None else (await self.shown([found]))[0]

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        return (await self.shown([await self._store.delete(key, expected=expected)]))[0]

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        page = await self._store.list(prefix, at=at, after=after, limit=limit)
        shown = await self.shown(page.entries)
        return page if shown is page.entries else replace(page, entries=[*shown])

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        return _ShownWatch(self._store.watch(prefix, after=after), self)

    async def close(self) -> None:
        """No-op: the inner store has another owner."""

    @abstractmethod
    async def shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries as JSON; the same sequence if nothing changes."""


class _ShownWatch(DelegatingWatch):
    def __init__(self, watch: Watch, store: ShownAsJson) -> None:
        super().__init__(watch)
        self._store = store

    async def _transformed(self, batch: Batch) -> Batch:
        entries = [entry for event in batch.events for entry in (event.entry, event.previous) if entry is not None]
        found = await self._store.shown(entries)
        if found is entries:
            return batch
        shown = iter(found)
        return replace(batch, events=tuple(_event(event, shown) for event in batch.events))


def _event(event: Event, shown: Iterator[Entry]) -> Event:
    entry = next(shown) if event.entry is not None else None
    previous = next(shown) if event.previous is not None else None
    return replace(event, entry=entry, previous=previous)

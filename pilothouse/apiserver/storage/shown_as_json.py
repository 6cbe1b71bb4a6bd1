"""A store some of whose values are no JSON, though those who use it see nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pilothouse.apiserver.storage.delegating import DelegatingStore, DelegatingWatch
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision, Store, Watch


class ShownAsJson(DelegatingStore, ABC):
    """Raises Undecodable, beside what every store raises, where a value can not be read."""

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
        """The store under it belongs to others."""

    @abstractmethod
    async def shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries as JSON; the very same sequence where they are."""


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

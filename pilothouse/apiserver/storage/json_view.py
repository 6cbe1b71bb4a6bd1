"""Stores that present every value as JSON.

kube-apiserver writes built-in kinds as protobuf. Both formats are readable, also by kube-apiserver. Protobuf values are
stale, so the next write of the object converts it to JSON, even a no-op write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import orjson

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.storage.delegating import DelegatingStore, DelegatingWatch
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision, Store, Watch
from pilothouse.machinery.objects import Json


class ShownAsJson(DelegatingStore, ABC):
    """Raises Undecodable for unreadable values, in addition to the errors of a store."""

    async def get(self, key: str) -> Entry | None:
        entry = await self._store.get(key)
        return None if entry is None else (await self.shown([entry]))[0]

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        return (await self.shown([await self._store.delete(key, expected=expected)]))[0]

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        page = await self._store.list(prefix, at=at, after=after, limit=limit)
        shown = await self.shown(page.entries)
        return page if shown is page.entries else replace(page, entries=[*shown])

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        return ShownWatch(self._store.watch(prefix, after=after), self)

    async def close(self) -> None:
        """No-op: the inner store has another owner."""

    @abstractmethod
    async def shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries as JSON; the same sequence if nothing changes."""


class ShownWatch(DelegatingWatch):
    def __init__(self, watch: Watch, store: ShownAsJson) -> None:
        super().__init__(watch)
        self._store = store

    async def _transformed(self, batch: Batch) -> Batch:
        entries = [entry for event in batch.events for entry in (event.entry, event.previous) if entry is not None]
        decoded = await self._store.shown(entries)
        if decoded is entries:
            return batch
        shown = iter(decoded)
        return replace(batch, events=tuple(_event(event, shown) for event in batch.events))


def _event(event: Event, shown: Iterator[Entry]) -> Event:
    entry = next(shown) if event.entry is not None else None
    previous = next(shown) if event.previous is not None else None
    return replace(event, entry=entry, previous=previous)


MAGIC = b"k8s\x00"
"""As in machinery/protobuf/envelope.py, which is not imported for stores without protobuf."""


class ProtobufStore(ShownAsJson):
    """Reads both formats, and writes JSON. `complete` is called with each object read from protobuf."""

    def __init__(self, store: Store, complete: Callable[[Json], None] = lambda obj: None) -> None:
        super().__init__(store)
        self._complete = complete

    async def shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        to_decode = sum(len(entry.value) for entry in entries if entry.value.startswith(MAGIC))
        return await offload_by_size(to_decode, self._in_json, entries) if to_decode else entries

    def _in_json(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [self._shown(entry) if entry.value.startswith(MAGIC) else entry for entry in entries]

    def _shown(self, entry: Entry) -> Entry:
        obj = from_protobuf(entry.key, entry.value)
        self._complete(obj)
        return replace(entry, value=orjson.dumps(obj), stale=True)


def from_protobuf(key: str, value: bytes) -> Json:
    """Decode a value. Raises Undecodable."""
    from pilothouse.machinery.protobuf.codec import decode
    from pilothouse.machinery.protobuf.wire import ProtobufError

    try:
        return decode(value)
    except ProtobufError as error:
        raise Undecodable(f"unable to decode the value of {key}: {error}") from error

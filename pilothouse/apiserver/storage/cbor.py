"""A store whose values are kept as CBOR, or were once: those who use it see JSON.

Both forms are always read. A value in the form that is not written today is stale, so that the next write of its
object, even one that changes nothing, brings it up to date.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import orjson

from pilothouse.apiserver.beside_the_loop import by_size
from pilothouse.apiserver.storage.delegating import DelegatingStore, DelegatingWatch
from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision, Store, Watch
from pilothouse.machinery.cbor.wire import SELF_DESCRIBED
from pilothouse.machinery.kept_bytes import kept


class CborStore(DelegatingStore):
    """Raises Undecodable, beside what every store raises, where a value is no CBOR that can be read."""

    def __init__(self, store: Store, *, writes_cbor: bool) -> None:
        super().__init__(store)
        self._writes_cbor = writes_cbor

    async def get(self, key: str) -> Entry | None:
        found = await self._store.get(key)
        return None if found is None else (await self.shown([found]))[0]

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        return replace(await self._store.create(key, await self._stored(value), ttl=ttl), value=value)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        stored = await self._stored(value)
        return replace(await self._store.update(key, stored, expected=expected, ttl=ttl), value=value)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        return (await self.shown([await self._store.delete(key, expected=expected)]))[0]

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        page = await self._store.list(prefix, at=at, after=after, limit=limit)
        return replace(page, entries=[*await self.shown(page.entries)])

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        return _CborWatch(self._store.watch(prefix, after=after), self)

    async def close(self) -> None:
        """The store under it belongs to others."""

    async def shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """The entries as JSON."""
        to_decode = sum(len(entry.value) for entry in entries if _is_cbor(entry.value))
        return await by_size(to_decode, self._shown, entries)

    def _shown(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [_in_json(entry) if _is_cbor(entry.value) is self._writes_cbor else _stale(entry) for entry in entries]

    async def _stored(self, value: bytes) -> bytes:
        return await by_size(len(value), _as_cbor, value) if self._writes_cbor else value


def _is_cbor(value: bytes) -> bool:
    return value.startswith(SELF_DESCRIBED)


def _as_cbor(value: bytes) -> bytes:
    """The order of the keys stays, so that what is read again is the same text."""
    from pilothouse.machinery.cbor.encoding import encode_object

    return encode_object(orjson.loads(value))


def _stale(entry: Entry) -> Entry:
    return replace(_in_json(entry), stale=True)


def _in_json(entry: Entry) -> Entry:
    from pilothouse.machinery.cbor.decoding import decode
    from pilothouse.machinery.cbor.wellformed import CborError

    if not _is_cbor(entry.value):
        return entry
    try:
        return replace(entry, value=kept(orjson.dumps(decode(entry.value))))
    except CborError as error:
        raise Undecodable(f"unable to decode the value of {entry.key}: {error}") from error


class _CborWatch(DelegatingWatch):
    def __init__(self, watch: Watch, store: CborStore) -> None:
        super().__init__(watch)
        self._store = store

    async def _transformed(self, batch: Batch) -> Batch:
        entries = [entry for event in batch.events for entry in (event.entry, event.previous) if entry is not None]
        shown = iter(await self._store.shown(entries))
        return replace(batch, events=tuple(_event(event, shown) for event in batch.events))


def _event(event: Event, shown: Iterator[Entry]) -> Event:
    entry = next(shown) if event.entry is not None else None
    previous = next(shown) if event.previous is not None else None
    return replace(event, entry=entry, previous=previous)

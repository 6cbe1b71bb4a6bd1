"""Transparent encryption of a store.

`EncryptingStore` wraps the whole store and hands out an encrypted view per resource.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pilothouse.apiserver.storage.delegating import DelegatingStore, DelegatingWatch
from pilothouse.apiserver.storage.encryption.current import CurrentEncryption
from pilothouse.apiserver.storage.encryption.transformer import Transformer
from pilothouse.apiserver.storage.errors import TransformFailed
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision, Store, Watch
from pilothouse.apiserver.storage.views import ResourceViews
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource


class EncryptingStore(DelegatingStore, ResourceViews):
    """Runs the KMS providers until closed."""

    def __init__(self, store: Store, encryption: CurrentEncryption) -> None:
        super().__init__(store)
        self.encryption = encryption
        self._running = asyncio.ensure_future(encryption.run())

    @classmethod
    async def open(cls, store: Store, encryption: CurrentEncryption) -> EncryptingStore:
        await encryption.start()
        return cls(store, encryption)

    def of(self, resource: GroupResource) -> Store:
        transformer = self.encryption.of(resource)
        return self._store if transformer is None else EncryptedStore(self._store, transformer)

    def provider_problems(self) -> list[str] | None:
        return self.encryption.problems() if self.encryption.has_providers else None

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self.encryption.close()
        await super().close()


class EncryptedStore(DelegatingStore):
    """A view of one resource, with values passed through `transformer`."""

    def __init__(self, store: Store, transformer: Transformer) -> None:
        super().__init__(store)
        self._transformer = transformer

    async def get(self, key: str) -> Entry | None:
        found = await self._store.get(key)
        return None if found is None else await self._plain(found)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        entry = await self._store.create(key, await self._encrypted(key, value), ttl=ttl)
        return replace(entry, value=value)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        entry = await self._store.update(key, await self._encrypted(key, value), expected=expected, ttl=ttl)
        return replace(entry, value=value)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        return await self._plain(await self._store.delete(key, expected=expected))

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        page = await self._store.list(prefix, at=at, after=after, limit=limit)
        return replace(page, entries=[await self._plain(entry) for entry in page.entries])

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        return _EncryptedWatch(self._store.watch(prefix, after=after), self._plain)

    async def _encrypted(self, key: str, value: bytes) -> bytes:
        try:
            return await self._transformer.to_storage(value, key.encode())
        except TransformFailed as error:
            raise TransformFailed(f"unable to transform key {quote(key)}: {error}") from error

    async def _plain(self, entry: Entry) -> Entry:
        try:
            plain = await self._transformer.from_storage(entry.value, entry.key.encode())
        except TransformFailed as error:
            raise TransformFailed(f"unable to transform key {quote(entry.key)}: {error}") from error
        return replace(entry, value=plain.value, stale=plain.stale)


class _EncryptedWatch(DelegatingWatch):
    def __init__(self, watch: Watch, plain: Callable[[Entry], Awaitable[Entry]]) -> None:
        super().__init__(watch)
        self._plain = plain

    async def _transformed(self, batch: Batch) -> Batch:
        return replace(batch, events=tuple([await self._event(event) for event in batch.events]))

    async def _event(self, event: Event) -> Event:
        entry = await self._plain(event.entry) if event.entry is not None else None
        previous = await self._plain(event.previous) if event.previous is not None else None
        return replace(event, entry=entry, previous=previous)

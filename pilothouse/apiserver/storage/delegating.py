"""A store and a watch that hand every call to another: for those who stand between a registry and its store, and
override what they change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from pilothouse.apiserver.storage.interface import Batch, Entry, Page, Revision, Store, Watch


class DelegatingStore:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, key: str) -> Entry | None:
        return await self._store.get(key)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        return await self._store.create(key, value, ttl=ttl)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        return await self._store.update(key, value, expected=expected, ttl=ttl)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        return await self._store.delete(key, expected=expected)

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        return await self._store.list(prefix, at=at, after=after, limit=limit)

    async def count(self, prefix: str) -> int:
        return await self._store.count(prefix)

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        return self._store.watch(prefix, after=after)

    async def current_revision(self) -> Revision:
        return await self._store.current_revision()

    async def compact(self, revision: Revision) -> None:
        await self._store.compact(revision)

    async def ping(self) -> None:
        await self._store.ping()

    async def close(self) -> None:
        await self._store.close()


class DelegatingWatch(ABC):
    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        return await self._transformed(await self._watch.__anext__())

    @abstractmethod
    async def _transformed(self, batch: Batch) -> Batch:
        """Return the batch as watchers are to see it."""

    async def request_progress(self) -> None:
        await self._watch.request_progress()

    async def aclose(self) -> None:
        await self._watch.aclose()

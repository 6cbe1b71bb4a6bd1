"""Base classes of stores and wrapping watches, and per-resource views for resources with another storage format."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from pilothouse.apiserver.storage.interface import Batch, Entry, Page, Revision, Store, Watch
from pilothouse.machinery.names import GroupResource


class ClosingStore(ABC):
    """A store that closes once, and completes the closing even if the caller is cancelled."""

    _closing: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._shut_down())
        await asyncio.shield(self._closing)

    @abstractmethod
    async def _shut_down(self) -> None:
        """Release what the store holds."""


class DelegatingStore:
    """Delegates every method. Methods return the inner coroutine without a frame of their own, because
    `current_revision` runs for every consistent read."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: str) -> Coroutine[Any, Any, Entry | None]:
        return self._store.get(key)

    def create(self, key: str, value: bytes, *, ttl: int = 0) -> Coroutine[Any, Any, Entry]:
        return self._store.create(key, value, ttl=ttl)

    def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Coroutine[Any, Any, Entry]:
        return self._store.update(key, value, expected=expected, ttl=ttl)

    def delete(self, key: str, *, expected: Revision) -> Coroutine[Any, Any, Entry]:
        return self._store.delete(key, expected=expected)

    def list(
        self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0
    ) -> Coroutine[Any, Any, Page]:
        return self._store.list(prefix, at=at, after=after, limit=limit)

    def count(self, prefix: str) -> Coroutine[Any, Any, int]:
        return self._store.count(prefix)

    def watch(self, prefix: str, *, after: Revision) -> Watch:
        return self._store.watch(prefix, after=after)

    def current_revision(self) -> Coroutine[Any, Any, Revision]:
        return self._store.current_revision()

    def compact(self, revision: Revision) -> Coroutine[Any, Any, None]:
        return self._store.compact(revision)

    def ping(self) -> Coroutine[Any, Any, None]:
        return self._store.ping()

    def close(self) -> Coroutine[Any, Any, None]:
        return self._store.close()


class DelegatingWatch(ABC):
    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        return await self._transformed(await self._watch.__anext__())

    @abstractmethod
    async def _transformed(self, batch: Batch) -> Batch:
        """Return the batch as presented to watchers."""

    async def request_progress(self) -> None:
        await self._watch.request_progress()

    async def aclose(self) -> None:
        await self._watch.aclose()


class ResourceViews(ABC):
    @abstractmethod
    def of(self, resource: GroupResource) -> Store:
        """Return the store for the registry of a resource."""

    @abstractmethod
    def provider_problems(self) -> list[str] | None:
        """Return the problems of the required key providers by name; None without providers."""


def store_of(store: Store, resource: GroupResource) -> Store:
    return store.of(resource) if isinstance(store, ResourceViews) else store

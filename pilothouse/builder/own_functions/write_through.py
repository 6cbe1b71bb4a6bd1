"""The store under the registry of an author's objects: a write goes to the author first, and into the mirror when the
author has done it. What fails in between is in the mirror after the next refresh."""

from __future__ import annotations

import orjson

from pilothouse.apiserver.storage.delegating import DelegatingStore
from pilothouse.apiserver.storage.errors import KeyExists, KeyNotFound, RevisionConflict
from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.builder.own_functions.answers import Answer
from pilothouse.builder.own_functions.mirror import Mirror


class WriteThroughStore(DelegatingStore):
    """Holds the keys of one resource. Where an object is read or written by its key, the author is asked for it first,
    so that nothing is decided by an old state. What an author's function raises is raised here (functions.py)."""

    def __init__(self, mirror: Mirror) -> None:
        super().__init__(mirror.store)
        self._mirror = mirror
        self._functions = mirror.functions

    async def get(self, key: str) -> Entry | None:
        await self._mirror.refresh_key(key)
        return await self._store.get(key)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        await self._mirror.refresh_key(key)
        async with self._mirror.order.writing(key):
            if await self._store.get(key) is not None:
                raise KeyExists(key)
            answer = await self._functions.create(key, orjson.loads(value))
            return await self._store.create(key, await self._kept(answer, value), ttl=ttl)

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        """The author is not told of changes to metadata that only the mirror keeps."""
        async with self._mirror.order.writing(key):
            current = await self._expected(key, expected)
            if await self._mirror.comparer.concerns_author(value, current.value):
                answer = await self._functions.update(key, orjson.loads(value))
                value = await self._kept(answer, value)
            return await self._store.update(key, value, expected=expected, ttl=ttl)

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        async with self._mirror.order.writing(key):
            await self._expected(key, expected)
            await self._functions.delete(key)
            self._mirror.comparer.forget(key)
            return await self._store.delete(key, expected=expected)

    async def _expected(self, key: str, expected: Revision) -> Entry:
        """Checked before the author is asked: what would fail in the end must not be done."""
        current = await self._store.get(key)
        if current is None:
            raise KeyNotFound(key)
        if current.modified != expected:
            raise RevisionConflict(f"{key} is at revision {current.modified}, not {expected}")
        return current

    async def _kept(self, answer: Answer | None, value: bytes) -> bytes:
        return value if answer is None else await self._mirror.comparer.kept(answer, value)

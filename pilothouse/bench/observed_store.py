"""A store whose writes are heard: who must go by an object goes by it before its writer has an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import orjson

from pilothouse.apiserver.storage.delegating import DelegatingStore
from pilothouse.apiserver.storage.interface import Entry, Revision, Store
from pilothouse.machinery.objects import Json

Hear: TypeAlias = Callable[[str, Json | None], Awaitable[None]]
"""Told the name of an object, and the object; None when it is gone. The writer waits until it returns."""


class ObservedStore(DelegatingStore):
    """The objects of one resource without namespaces."""

    def __init__(self, store: Store, hear: Hear) -> None:
        super().__init__(store)
        self._hear = hear

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        entry = await super().create(key, value, ttl=ttl)
        await self._hear(_name(key), orjson.loads(value))
        return entry

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        entry = await super().update(key, value, expected=expected, ttl=ttl)
        await self._hear(_name(key), orjson.loads(value))
        return entry

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        entry = await super().delete(key, expected=expected)
        await self._hear(_name(key), None)
        return entry


def _name(key: str) -> str:
    return key.rpartition("/")[2]

"""A cache whose entries live for a while each; when it is full the least recently used one goes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    def __init__(self, size: int, *, now: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._now = now
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()
        """With the moments at which they end, least recently used first."""

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[1] <= self._now():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, *, ttl: float) -> None:
        """Nothing, for a time that is not there."""
        if ttl <= 0:
            return
        self._entries[key] = (value, self._now() + ttl)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)

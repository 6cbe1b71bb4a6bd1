"""Caches for keys that clients choose: bounded by how many entries there are and by how much they hold.

    @bounded_cache(entries=4096, key_bytes=512)      for functions of strings whose results are about as large as these
    def parse(text: str) -> Parsed: ...

    BoundedCache(entries=4096, total_bytes=8 << 20)  where results have a size of their own, or live for a while

A key or value that is too large is computed each time and never kept, so that nobody can fill the memory with them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from math import inf
from typing import Any, Generic, ParamSpec, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")


def bounded_cache(*, entries: int, key_bytes: int) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Keep the function's results for arguments that have at most `key_bytes` characters together.

    Arguments are strings or bytes, by position; the result may hold no more than some multiple of them.
    """

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        remembered: Any = lru_cache(entries)(function)
        compute: Any = function

        # One and two arguments are written out, because this stands on the way of every request.
        def call_with_one(a: Any) -> Any:
            return remembered(a) if len(a) <= key_bytes else compute(a)

        def call_with_two(a: Any, b: Any) -> Any:
            return remembered(a, b) if len(a) + len(b) <= key_bytes else compute(a, b)

        def call_with_more(*args: Any) -> Any:
            return remembered(*args) if sum(map(len, args)) <= key_bytes else compute(*args)

        calls: dict[int, Any] = {1: call_with_one, 2: call_with_two}
        call: Any = wraps(function)(calls.get(function.__code__.co_argcount, call_with_more))
        call.cache_clear, call.cache_info = remembered.cache_clear, remembered.cache_info
        return cast("Callable[P, V]", call)

    return decorate


class BoundedCache(Generic[K, V]):
    """Entries in the order of their last use; when there are too many, or they hold too much, the oldest go.

    An entry that alone would take more than a sixteenth of `total_bytes` is not kept.
    """

    def __init__(self, *, entries: int, total_bytes: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most = entries
        self._most_bytes = total_bytes
        self._now = now
        self._entries: OrderedDict[K, tuple[V, int, float]] = OrderedDict()
        """Value, size, and the moment at which the entry ends; least recently used first."""
        self._bytes = 0
        """The sum of the entries' sizes."""

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[2] <= self._now():
            self.discard(key)
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, *, size: int, ttl: float = inf) -> None:
        """Keep `value`, which holds `size` bytes together with its key, for `ttl` seconds; not at all if `ttl` is 0."""
        self.discard(key)
        if ttl <= 0 or size > self._most_bytes // 16:
            return
        self._entries[key] = (value, size, self._now() + ttl)
        self._bytes += size
        while len(self._entries) > self._most or self._bytes > self._most_bytes:
            self.discard(next(iter(self._entries)))

    def discard(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1]

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

"""Caches for keys chosen by clients, bounded by number of entries and by size.

    @bounded_cache(entries=4096, key_bytes=512)      for functions of strings with results of similar size
    def parse(text: str) -> Parsed: ...

    BoundedCache(entries=4096, total_bytes=8 << 20)  for results with a size of their own, or with a time to live

Keys and values that are too large are recomputed each time and never cached, so that clients cannot exhaust memory.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from inspect import signature
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")


def bounded_cache(
    *, entries: int, key_bytes: int, chosen: int | None = None
) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Cache the function's results for arguments of at most `key_bytes` characters in total.

    Arguments are positional strings or bytes; the result's size must be bounded by a multiple of theirs. With `chosen`,
    only the first `chosen` arguments come from clients; the remaining arguments have few distinct values.
    """

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        cached: Any = lru_cache(entries)(function)
        compute: Any = function
        arguments = len(signature(function).parameters)

        # Common arities are written out, because these calls are on the path of every request.
        def call_with_one(a: Any) -> Any:
            return cached(a) if len(a) <= key_bytes else compute(a)

        def call_with_two(a: Any, b: Any) -> Any:
            return cached(a, b) if len(a) + len(b) <= key_bytes else compute(a, b)

        def call_with_three(a: Any, b: Any, c: Any) -> Any:
            return cached(a, b, c) if len(a) + len(b) + len(c) <= key_bytes else compute(a, b, c)

        def call_with_own(a: Any, own: Any) -> Any:
            return cached(a, own) if len(a) <= key_bytes else compute(a, own)

        def call_with_two_own(a: Any, own: Any, other: Any) -> Any:
            return cached(a, own, other) if len(a) <= key_bytes else compute(a, own, other)

        def call_with_more(*args: Any) -> Any:
            return cached(*args) if sum(map(len, args[:chosen])) <= key_bytes else compute(*args)

        calls: dict[tuple[int, int], Any] = {(1, 1): call_with_one, (2, 2): call_with_two, (3, 3): call_with_three}
        calls |= {(1, 2): call_with_own, (1, 3): call_with_two_own}
        call: Any = wraps(function)(calls.get((chosen or arguments, arguments), call_with_more))
        call.cache_clear, call.cache_info = cached.cache_clear, cached.cache_info
        return cast("Callable[P, V]", call)

    return decorate


class BoundedCache(Generic[K, V]):
    """Thread-safe LRU cache; evicts the least recently used entries when either limit is exceeded.

    An entry larger than a sixteenth of `total_bytes` is not cached.
    """

    def __init__(self, *, entries: int, total_bytes: int, now: Callable[[], float] = time.monotonic) -> None:
        self._max_entries = entries
        self._max_bytes = total_bytes
        self._now = now
        self._lock = RLock()
        self._entries: OrderedDict[K, tuple[V, int, float | None]] = OrderedDict()
        """Value, size and expiry time (None = never); least recently used first."""
        self._bytes = 0
        """Sum of the sizes of all entries."""

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, _, end = entry
        if end is not None and end <= self._now():
            self.discard(key)
            return None
        try:  # noqa: SIM105  (suppress would cost more than the rest of the method)
            self._entries.move_to_end(key)
        except KeyError:  # evicted by another thread
            pass
        return value

    def put(self, key: K, value: V, *, size: int, ttl: float | None = None) -> None:
        """Cache `value` for `ttl` seconds (0 = not at all). `size` is the size of key and value in bytes."""
        with self._lock:
            self.discard(key)
            if size > self._max_bytes // 16 or (ttl is not None and ttl <= 0):
                return
            self._entries[key] = (value, size, None if ttl is None else self._now() + ttl)
            self._bytes += size
            while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
                # One step: `get` reorders without the lock, which would break an iteration.
                _, (_, evicted_size, _) = self._entries.popitem(last=False)
                self._bytes -= evicted_size

    def discard(self, key: K) -> None:
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._bytes -= entry[1]

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

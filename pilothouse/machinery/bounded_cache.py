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
from inspect import signature
from threading import RLock
from typing import Any, Generic, ParamSpec, TypeVar, cast

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")


def bounded_cache(
    *, entries: int, key_bytes: int, chosen: int | None = None
) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Keep the function's results for arguments that have at most `key_bytes` characters together.

    Arguments are strings or bytes, by position; the result may hold no more than some multiple of them. With `chosen`,
    only the first that many are what clients choose; the others can be anything of which there are few.
    """

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        remembered: Any = lru_cache(entries)(function)
        compute: Any = function
        arguments = len(signature(function).parameters)

        # What is common is written out, because this stands on the way of every request.
        def call_with_one(a: Any) -> Any:
            return remembered(a) if len(a) <= key_bytes else compute(a)

        def call_with_two(a: Any, b: Any) -> Any:
            return remembered(a, b) if len(a) + len(b) <= key_bytes else compute(a, b)

        def call_with_three(a: Any, b: Any, c: Any) -> Any:
            return remembered(a, b, c) if len(a) + len(b) + len(c) <= key_bytes else compute(a, b, c)

        def call_with_own(a: Any, own: Any) -> Any:
            return remembered(a, own) if len(a) <= key_bytes else compute(a, own)

        def call_with_two_own(a: Any, own: Any, other: Any) -> Any:
            return remembered(a, own, other) if len(a) <= key_bytes else compute(a, own, other)

        def call_with_more(*args: Any) -> Any:
            return remembered(*args) if sum(map(len, args[:chosen])) <= key_bytes else compute(*args)

        calls: dict[tuple[int, int], Any] = {(1, 1): call_with_one, (2, 2): call_with_two, (3, 3): call_with_three}
        calls |= {(1, 2): call_with_own, (1, 3): call_with_two_own}
        call: Any = wraps(function)(calls.get((chosen or arguments, arguments), call_with_more))
        call.cache_clear, call.cache_info = remembered.cache_clear, remembered.cache_info
        return cast("Callable[P, V]", call)

    return decorate


class BoundedCache(Generic[K, V]):
    """Entries in the order of their last use; when there are too many, or they hold too much, the oldest go.

    An entry that alone would take more than a sixteenth of `total_bytes` is not kept. Threads may share it.
    """

    def __init__(self, *, entries: int, total_bytes: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most = entries
        self._most_bytes = total_bytes
        self._now = now
        self._changing = RLock()
        self._entries: OrderedDict[K, tuple[V, int, float | None]] = OrderedDict()
        """Value, size, and the moment at which the entry ends, if it does; least recently used first."""
        self._bytes = 0
        """The sum of the entries' sizes."""

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, _, end = entry
        if end is not None and end <= self._now():
            self.discard(key)
            return None
        try:  # noqa: SIM105  (suppress would cost more than all the rest)
            self._entries.move_to_end(key)
        except KeyError:  # another thread has just made room
            pass
        return value

    def put(self, key: K, value: V, *, size: int, ttl: float | None = None) -> None:
        """Keep `value`, which holds `size` bytes together with its key, for `ttl` seconds; not at all if `ttl` is 0."""
        with self._changing:
            self.discard(key)
            if size > self._most_bytes // 16 or (ttl is not None and ttl <= 0):
                return
            self._entries[key] = (value, size, None if ttl is None else self._now() + ttl)
            self._bytes += size
            while len(self._entries) > self._most or self._bytes > self._most_bytes:
                # In one step, because `get` reorders without the lock, which an iteration would not survive.
                _, (_, gone, _) = self._entries.popitem(last=False)
                self._bytes -= gone

    def discard(self, key: K) -> None:
        with self._changing:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._bytes -= entry[1]

    def clear(self) -> None:
        with self._changing:
            self._entries.clear()
            self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

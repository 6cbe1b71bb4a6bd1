"""Postings: keys by value, in key order.

Most values have few keys, and some (the pod name label of a StatefulSet) exactly one, so the representation is as small
as possible:

    one key       the key itself
    some keys     a sorted list
    many keys     a sorted list of lists, for cheap inserts
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

from sortedcontainers import SortedList

from pilothouse.apiserver.storage.cacher.pages import CacheKeyRange
from pilothouse.machinery.dataclass import dataclass

_LONG = 2_000

SortedKeys: TypeAlias = "list[str] | SortedList[str]"


@dataclass(frozen=True, slots=True)
class KeyRun:
    """Consecutive keys of a posting."""

    keys: SortedKeys
    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first

    def take(self, limit: int = 0) -> list[str]:
        """Return the first `limit` keys; all if `limit` is not positive."""
        return list(self.keys[self.first : min(self.end, self.first + limit) if limit > 0 else self.end])


class Postings:
    __slots__ = ("_held",)

    _held: dict[str, str | SortedKeys]  # no empty values

    def __init__(self) -> None:
        self._held = {}

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._held)

    def add(self, value: str, key: str) -> None:
        """Add a key. Idempotent."""
        held = self._held.get(value)
        if held is None:
            self._held[value] = key
        elif isinstance(held, str):
            if held != key:
                self._held[value] = [held, key] if held < key else [key, held]
        elif not isinstance(held, list):
            if key not in held:
                held.add(key)
        else:
            if held[-1] < key:
                held.append(key)
            elif held[at := bisect_left(held, key)] != key:
                held.insert(at, key)
            if len(held) > _LONG:
                self._held[value] = SortedList(held)

    def discard(self, value: str, key: str) -> None:
        """Remove a key; a no-op if absent."""
        held = self._held.get(value)
        if held is None or held == key:
            self._held.pop(value, None)
        elif not isinstance(held, str):
            at = _position(held, key)
            if at < len(held) and held[at] == key:
                del held[at]
            if len(held) == 1:
                self._held[value] = held[0]

    def values(self) -> list[str]:
        return list(self._held)

    def within(self, value: str, keys: CacheKeyRange) -> KeyRun:
        """Return the keys in the range that have the value."""
        held = self._held.get(value)
        run: SortedKeys = [held] if isinstance(held, str) else held or []
        first = _position(run, keys.first)
        return KeyRun(run, first, max(first, _position(run, keys.end)))


def _position(held: SortedKeys, key: str) -> int:
    return bisect_left(held, key) if isinstance(held, list) else held.bisect_left(key)

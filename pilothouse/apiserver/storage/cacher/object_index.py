"""Indexes of objects by label or field value, updated with every change.

An index can leave an object unindexed, so that every selector examines it: undecodable objects, and objects with so
many labels that the index would exceed the object itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from sortedcontainers import SortedList

from pilothouse.apiserver.storage.cacher.selection import CacheKeyRange, Demand
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_periodically

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
    """Keys by value, in key order.

    Most values have few keys, and some (the pod name label of a StatefulSet) exactly one, so the representation is as
    small as possible:

        one key       the key itself
        some keys     a sorted list
        many keys     a sorted list of lists, for cheap inserts
    """

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


_MOST_LABELS = 32
_TEXT = frozenset({str})
_MOST_VALUES = 1_000
_TURN = 100  # objects indexed before yielding; each may need parsing


class ObjectIndex(ABC):
    """While an index is filled, changes may concern objects that are not indexed yet."""

    unindexed: set[str]  # keys that every selector must examine
    complete: bool  # whether every object is indexed

    def __init__(self) -> None:
        self.unindexed = set()
        self.complete = False

    def fill_at_once(self, objects: Mapping[str, StoredObject]) -> None:
        for key, stored in objects.items():
            self.change(key, None, stored)
        self.complete = True

    async def fill(self, objects: Mapping[str, StoredObject]) -> None:
        """Index all objects, yielding periodically. `objects` may change meanwhile."""
        async for key in yield_periodically(list(objects), every=_TURN):
            if (stored := objects.get(key)) is not None:
                self.change(key, None, stored)
        self.complete = True

    @abstractmethod
    def change(self, key: str, previous: StoredObject | None, current: StoredObject | None) -> None:
        """Apply a create, update or delete. Idempotent."""

    @abstractmethod
    def runs(self, demand: Demand, keys: CacheKeyRange) -> list[KeyRun] | None:
        """Return disjoint runs of the keys that meet the demand, without `unindexed`; None if there are too many
        values."""


class LabelIndex(ObjectIndex):
    """Index by label. The old labels are read from the old object, not stored."""

    _postings: dict[str, Postings]  # by label key; never empty

    def __init__(self) -> None:
        super().__init__()
        self._postings = {}

    def change(self, key: str, previous: StoredObject | None, current: StoredObject | None) -> None:
        before, after = _labels(previous), _labels(current)
        if before == after is not None and previous is not None:
            return
        if before is not None:
            labels = before.items()
            for name, value in labels:
                if (postings := self._postings.get(name)) is not None:
                    postings.discard(value, key)
                    if not postings:
                        del self._postings[name]
        self.unindexed.discard(key)
        if after is None:
            self.unindexed.add(key)
        else:
            self._add(key, after.items())

    def runs(self, demand: Demand, keys: CacheKeyRange) -> list[KeyRun] | None:
        postings = self._postings.get(demand.on.name)
        if postings is None:
            return []
        values = postings.values() if demand.values is None and len(postings) <= _MOST_VALUES else demand.values
        if values is None or len(values) > _MOST_VALUES:
            return None
        return [postings.within(value, keys) for value in dict.fromkeys(values)]

    def _add(self, key: str, labels: Iterable[tuple[str, str]]) -> None:
        for name, value in labels:
            postings = self._postings.get(name)
            if postings is None:
                postings = self._postings[name] = Postings()
            postings.add(value, key)


class FieldIndex(ObjectIndex):
    """Index by the value of one field."""

    _values: dict[str, str]  # key → value; spares parsing the old object

    def __init__(self, field: str) -> None:
        super().__init__()
        self._field = field
        self._values = {}
        self._postings = Postings()

    def change(self, key: str, previous: StoredObject | None, current: StoredObject | None) -> None:
        before, after = self._values.get(key), self._value(current)
        if before is not None and before != after:
            self._postings.discard(self._values.pop(key), key)
        if after is not None and before != after:
            self._postings.add(after, key)
            self._values[key] = after
        self.unindexed.discard(key)
        if after is None and current is not None:
            self.unindexed.add(key)

    def runs(self, demand: Demand, keys: CacheKeyRange) -> list[KeyRun] | None:
        return [self._postings.within(value, keys) for value in demand.values or ()]

    def _value(self, stored: StoredObject | None) -> str | None:
        """Return the field value; None without an object or for undecodable objects."""
        try:
            return None if stored is None else stored.read_fields().get(self._field, "")
        except Exception:
            return None


def _labels(stored: StoredObject | None) -> dict[str, str] | None:
    """Return the labels to index; None if not indexable."""
    if stored is None:
        return {}
    try:
        labels = stored.read_labels()
        return labels if len(labels) <= _MOST_LABELS and _TEXT.issuperset(map(type, labels.values())) else None
    except Exception:
        return None

"""Which objects have which labels, and which value of a field: kept with every change, so that a selector looks only
at what it can match.

An index may say of an object that every selector has to look at it: one that cannot be read, or has so many labels
that to index them all would take more memory than the object itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from pilothouse.apiserver.storage.cacher.pages import CacheKeyRange
from pilothouse.apiserver.storage.cacher.postings import KeyRun, Postings
from pilothouse.apiserver.storage.cacher.selection_predicate import Demand
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.event_loop import yield_periodically

_MOST_LABELS = 32
_TEXT = frozenset({str})
_MOST_VALUES = 1_000
_TURN = 100  # objects indexed before others may run: each may have to be parsed


class ObjectIndex(ABC):
    """While it is filled, changes may come for objects that it has not seen yet."""

    unindexed: set[str]  # keys of the objects that every selector has to look at
    complete: bool  # whether every object has been seen

    def __init__(self) -> None:
        self.unindexed = set()
        self.complete = False

    def fill_at_once(self, objects: Mapping[str, StoredObject]) -> None:
        for key, stored in objects.items():
            self.change(key, None, stored)
        self.complete = True

    async def fill(self, objects: Mapping[str, StoredObject]) -> None:
        """Takes in every object, in turns with others. `objects` may change meanwhile."""
        async for key in yield_periodically(list(objects), every=_TURN):
            if (stored := objects.get(key)) is not None:
                self.change(key, None, stored)
        self.complete = True

    @abstractmethod
    def change(self, key: str, previous: StoredObject | None, current: StoredObject | None) -> None:
        """The object has become another, has come or has gone. To be told twice of it changes nothing."""

    @abstractmethod
    def runs(self, demand: Demand, keys: CacheKeyRange) -> list[KeyRun] | None:
        """Return who in the range meets the demand, apart from `unindexed`; None when there are too many values to
        say. No key is in two runs."""


class LabelIndex(ObjectIndex):
    """The objects by each of their labels. What labels an object had is read again from the object, not kept."""

    _postings: dict[str, Postings]  # by the key of the label; none is empty

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
    """The objects by the value of one field."""

    _values: dict[str, str]  # by key: to read it again from an object that was, that object would have to be parsed

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
        """None where there is no object, or none that can be read."""
        try:
            return None if stored is None else stored.read_fields().get(self._field, "")
        except Exception:
            return None


def _labels(stored: StoredObject | None) -> dict[str, str] | None:
    """Return the labels to index; None where they cannot be."""
    if stored is None:
        return {}
    try:
        labels = stored.read_labels()
        return labels if len(labels) <= _MOST_LABELS and _TEXT.issuperset(map(type, labels.values())) else None
    except Exception:
        return None

"""Indexes of one resource, and candidate objects for selectors.

Labels are indexed shortly after the start if they can be read without parsing, else on first use. A declared field is
indexed once a selector would otherwise scan many objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from pilothouse.apiserver.storage.cacher.clock import CacheClock, CacheTimer
from pilothouse.apiserver.storage.cacher.events import Predicate
from pilothouse.apiserver.storage.cacher.object_index import FieldIndex, KeyRun, LabelIndex, ObjectIndex
from pilothouse.apiserver.storage.cacher.selection import CacheKeyRange, Demand, SelectionPredicate
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass

FEW = 500  # objects that are cheap to scan without an index
_MOST_MERGED = 10_000  # maximum keys merged from several runs without yielding
_AFTER_START = 1.0  # seconds until labels are indexed in advance; the start has priority
_LABELS = ""  # name of the label index among the field indexes


@dataclass(frozen=True, slots=True)
class Candidates:
    """Keys in a range that a predicate can select."""

    runs: Sequence[KeyRun]
    exact: bool
    """Whether the predicate selects all of them."""

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def take(self, limit: int = 0) -> list[str]:
        """Return the first `limit` keys in order; all if `limit` is not positive."""
        if len(self.runs) == 1:
            return self.runs[0].take(limit)
        merged = sorted(chain.from_iterable(run.take(limit) for run in self.runs))
        return merged[:limit] if limit > 0 else merged


class CacheIndexes:
    _indexes: dict[str, ObjectIndex]  # by field; some are being filled
    _filling: dict[ObjectIndex, asyncio.Task[None]]

    def __init__(self, fields: Sequence[str], clock: CacheClock, *, labels_unasked: bool) -> None:
        self._fields = fields
        self._clock = clock
        self._labels_unasked = labels_unasked
        self._timer: CacheTimer | None = None
        self._objects: Mapping[str, StoredObject] = {}
        self._indexes = {}
        self._filling = {}

    def restart(self, objects: Mapping[str, StoredObject]) -> None:
        """Restart with these objects. `change` reports later changes."""
        self.stop()
        self._objects = objects
        self._indexes = {}
        if self._labels_unasked and len(objects) <= FEW:
            self._add(_LABELS)
        elif self._labels_unasked:
            self._timer = self._clock.call_later(_AFTER_START, lambda: self._get(_LABELS))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for filling in self._filling.values():
            filling.cancel()
        self._filling = {}

    def change(self, key: str, previous: StoredObject | None, current: StoredObject | None) -> None:
        for index in self._indexes.values():
            index.change(key, previous, current)

    def missing(self, predicate: Predicate | None) -> list[str]:
        """Return the unfilled indexes that could narrow the predicate, most selective first."""
        if not isinstance(predicate, SelectionPredicate):
            return []
        missing = [name for name, _ in self._demands(predicate) if not self._is_complete(name)]
        return sorted(missing, key=[*self._fields, _LABELS].index) if len(missing) > 1 else missing

    async def wait_for(self, name: str) -> None:
        """Wait until the index is filled or abandoned."""
        if filling := self._filling.get(self._get(name)):
            await asyncio.wait([filling])

    def candidates(self, predicate: Predicate, keys: CacheKeyRange) -> Candidates | None:
        """Return the smallest candidate set of any index; None without a usable index."""
        if not isinstance(predicate, SelectionPredicate):
            return None
        found = [
            narrowed
            for name, demand in self._demands(predicate)
            if self._is_complete(name) and (narrowed := _narrowed(self._indexes[name], demand, keys)) is not None
        ]
        if not found:
            return None
        fewest = min(found, key=len)
        return fewest if predicate.is_one_requirement else Candidates(fewest.runs, exact=False)

    def _demands(self, predicate: SelectionPredicate) -> Iterator[tuple[str, Demand]]:
        """Yield the demands that an index supports, with the index name."""
        for demand in predicate.demands:
            if demand.on.is_label:
                yield _LABELS, demand
            elif demand.on.name in self._fields:
                yield demand.on.name, demand

    def _is_complete(self, name: str) -> bool:
        index = self._indexes.get(name)
        return index is not None and index.complete

    def _get(self, name: str) -> ObjectIndex:
        return self._indexes.get(name) or self._add(name)

    def _add(self, name: str) -> ObjectIndex:
        index = self._indexes[name] = LabelIndex() if name == _LABELS else FieldIndex(name)
        if len(self._objects) <= FEW:
            index.fill_at_once(self._objects)
        else:
            filling = self._filling[index] = asyncio.create_task(index.fill(self._objects))
            filling.add_done_callback(lambda _: self._filling.pop(index, None))
        return index


def _narrowed(index: ObjectIndex, demand: Demand, keys: CacheKeyRange) -> Candidates | None:
    runs = index.runs(demand, keys)
    if runs is None or len(index.unindexed) > _MOST_MERGED:
        return None
    if unindexed := sorted(key for key in index.unindexed if key in keys):
        runs.append(KeyRun(unindexed, 0, len(unindexed)))
    found = Candidates(runs, exact=not unindexed)
    return found if len(runs) <= 1 or len(found) <= _MOST_MERGED else None

"""Selections of LIST and WATCH: key ranges, predicates with their demands on indexes, and pages of selected objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import islice
from typing import NamedTuple

from pilothouse.apiserver.storage.cacher.events import Predicate
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.selectors import fields, labels
from pilothouse.machinery.selectors.requirement import Operator

_MOST_DEMANDS = 16
_POSITIVE = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


class LabelOrField(NamedTuple):
    """A label or a selectable field of an object."""

    is_label: bool
    name: str

    def of(self, stored: StoredObject) -> str | None:
        """Return the value; None for a missing label."""
        return stored.labels.get(self.name) if self.is_label else stored.fields.get(self.name, "")


class Demand(NamedTuple):
    """The object must have one of the values; None = any value."""

    on: LabelOrField
    values: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SelectionPredicate:
    """A predicate on stored objects; immutable, like its selectors."""

    labels: labels.Selector = labels.EVERYTHING
    fields: fields.Selector = fields.EVERYTHING
    demands: tuple[Demand, ...] = field(init=False, repr=False, compare=False)
    """Positive requirements of the selectors, fields first. Negative requirements are no demands."""
    _matches: Predicate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "demands", tuple(islice(self._demands(), _MOST_DEMANDS)))
        object.__setattr__(self, "_matches", self._compiled())

    def __call__(self, stored: StoredObject) -> bool:
        return self._matches(stored)

    def _demands(self) -> Iterator[Demand]:
        for term in self.fields.requirements:
            if term.equal:
                yield Demand(LabelOrField(False, term.field), (term.value,))
        for requirement in self.labels.requirements:
            if requirement.operator in _POSITIVE:
                yield Demand(LabelOrField(True, requirement.key), requirement.values)
            elif requirement.operator is Operator.EXISTS:
                yield Demand(LabelOrField(True, requirement.key), None)

    @property
    def is_one_requirement(self) -> bool:
        """Whether a single requirement decides the selection."""
        return len(self.fields.requirements) + len(self.labels.requirements) == 1

    def exact_match(self) -> tuple[LabelOrField, str] | None:
        """Return a label or field that must equal one value, if any."""
        for on, values in self.demands:
            if values is not None and len(values) == 1:
                return on, values[0]
        return None

    def _compiled(self) -> Predicate:
        by_labels, by_fields = self.labels.matches, self.fields.matches
        if self.fields.empty:
            return lambda stored: by_labels(stored.labels)
        if self.labels.empty:
            return lambda stored: by_fields(stored.fields)
        return lambda stored: by_labels(stored.labels) and by_fields(stored.fields)


_TURN = 500  # objects examined before yielding; a few milliseconds with parsing


@dataclass(frozen=True, slots=True)
class CacheKeyRange:
    r"""Keys from `first` (inclusive) to `end` (exclusive), in code point order, which equals UTF-8 byte order.

    A prefix ends with a slash and covers the keys below; any other string is a single key.

        /registry/pods/ns/   →  [/registry/pods/ns/, /registry/pods/ns0)
        /registry/pods/ns/a  →  [/registry/pods/ns/a, /registry/pods/ns/a\\0)
    """

    first: str
    end: str

    @classmethod
    def of(cls, prefix: str, after: str = "") -> CacheKeyRange:
        end = prefix[:-1] + "0" if prefix.endswith("/") else prefix + "\0"
        return cls(max(prefix, after + "\0") if after else prefix, end)

    def __contains__(self, key: str) -> bool:
        return self.first <= key < self.end


@dataclass(frozen=True, slots=True)
class ListSelection:
    """Keys greater than `after`; of the matching objects the first `limit`, or all if `limit` is not positive."""

    prefix: str
    after: str = ""
    limit: int = 0
    matches: Predicate | None = None
    keys: CacheKeyRange = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", CacheKeyRange.of(self.prefix, self.after))


@dataclass(frozen=True, slots=True)
class CachedPage:
    """Objects in key order at `revision`. `remaining` counts objects behind the last one, matching or not; 0 exactly if
    the list is complete."""

    objects: Sequence[StoredObject]
    revision: Revision
    remaining: int = 0


async def select(objects: Sequence[StoredObject], *, matches: Predicate, limit: int, revision: Revision) -> CachedPage:
    """Return the first `limit` matching objects, yielding periodically. `objects` must not change meanwhile."""
    chosen: list[StoredObject] = []
    for seen, obj in enumerate(objects, start=1):
        if matches(obj):
            chosen.append(obj)
            if len(chosen) == limit:
                return CachedPage(chosen, revision, len(objects) - seen)
        if seen % _TURN == 0:
            await yield_to_loop()
    return CachedPage(chosen, revision)

"""What the selectors of a LIST or a watch ask of an object, and which indexes can tell who may meet it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import islice
from typing import NamedTuple

from pilothouse.apiserver.storage.cacher.events import Predicate
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.selectors import fields, labels
from pilothouse.machinery.selectors.requirement import Operator

_MOST_DEMANDS = 16
_POSITIVE = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


class LabelOrField(NamedTuple):
    """Something of an object that has one value, if any: a label, or a selectable field."""

    is_label: bool
    name: str

    def of(self, stored: StoredObject) -> str | None:
        """Return its value; None for a label that the object does not have."""
        return stored.labels.get(self.name) if self.is_label else stored.fields.get(self.name, "")


class Demand(NamedTuple):
    """The object must have one of the values, or with None, any."""

    on: LabelOrField
    values: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SelectionPredicate:
    """Whether an object is selected: `predicate(stored)`. Immutable, as its selectors are."""

    labels: labels.Selector = labels.EVERYTHING
    fields: fields.Selector = fields.EVERYTHING
    demands: tuple[Demand, ...] = field(init=False, repr=False, compare=False)
    """The first requirements on what every selected object must have, fields first. A requirement not to have
    something is no demand."""
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
        """Whether to meet one demand, if there is one, is to be selected."""
        return len(self.fields.requirements) + len(self.labels.requirements) == 1

    def exact_match(self) -> tuple[LabelOrField, str] | None:
        """Return one thing that must have one certain value, if there is such a thing."""
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

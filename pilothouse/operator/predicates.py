"""Predicates: which events of an object lead to a reconcile. Combine predicates with `&`, `|` and `~`.

An update from not deleting to deleting always passes, so that no predicate can delay a finalizer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TypeAlias

from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.failed_attempts import log_failed_attempt
from pilothouse.machinery.objects import Json, annotations_of, labels_of, resource_version_of
from pilothouse.machinery.selectors import labels

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one object. `old` is None for an addition, `new` is None for a deletion.

    >>> from pilothouse.operator import Event
    >>> Event(None, {"metadata": {"name": "a"}}).is_update
    False
    """

    old: Json | None
    new: Json | None

    @property
    def object(self) -> Json:
        """The newest known state."""
        state = self.new if self.new is not None else self.old
        return {} if state is None else state

    @property
    def is_update(self) -> bool:
        """Whether both states are known."""
        return self.old is not None and self.new is not None


Passes: TypeAlias = Callable[[Event], bool]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A named condition on events.

    >>> from pilothouse.operator import Event, GenerationChanged, LabelChanged, Predicate
    >>> small = Predicate(lambda event: event.object["spec"]["size"] < 3)
    >>> small(Event(None, {"spec": {"size": 1}}))
    True
    >>> either = GenerationChanged | LabelChanged
    >>> either(Event({"metadata": {"generation": 1}}, {"metadata": {"generation": 1}}))
    False
    """

    passes: Passes = field(repr=False)
    name: str = ""

    def __call__(self, event: Event) -> bool:
        return self.passes(event)

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(lambda event: self(event) and other(event), f"({self.name} and {other.name})")

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(lambda event: self(event) or other(event), f"({self.name} or {other.name})")

    def __invert__(self) -> Predicate:
        return Predicate(lambda event: not self(event), f"not {self.name}")


def _on_change(name: str, part: Callable[[Json], object]) -> Predicate:
    """Return a predicate that drops updates without a change of the part."""

    def passes(event: Event) -> bool:
        return event.old is None or event.new is None or part(event.old) != part(event.new)

    return Predicate(passes, name)


def _generation(event: Event) -> bool:
    if event.old is None or event.new is None:
        return True
    old, new = ((state.get("metadata") or {}).get("generation") for state in (event.old, event.new))
    return old is None or new is None or old != new


GenerationChanged = Predicate(_generation, "GenerationChanged")
"""Drop updates that change neither the spec nor the deletion. Kinds without generations always pass."""

LabelChanged = _on_change("LabelChanged", labels_of)
"""Drop updates that do not change the labels."""

AnnotationChanged = _on_change("AnnotationChanged", annotations_of)
"""Drop updates that do not change the annotations."""

ResourceVersionChanged = _on_change("ResourceVersionChanged", resource_version_of)
"""Drop periodic resyncs."""


def matches_labels(selector: str) -> Predicate:
    """Return a predicate for objects that match a label selector. Raises InvalidSelector.

    An update passes if the old or the new state matches, so that a reconciler sees an object leave the selection.

    >>> from pilothouse.operator import Event, matches_labels
    >>> matches_labels("app=web")(Event(None, {"metadata": {"labels": {"app": "web"}}}))
    True
    """
    matches = labels.parse(selector).matches

    def passes(event: Event) -> bool:
        return any(matches(labels_of(state)) for state in (event.old, event.new) if state is not None)

    return Predicate(passes, f"matches_labels({selector!r})")


def passes_all(predicates: Iterable[Passes], event: Event) -> bool:
    """Whether an event leads to a reconcile. An event passes a predicate that raises."""
    if event.old is not None and event.new is not None and is_deleting(event.new) and not is_deleting(event.old):
        return True
    try:
        return all(predicate(event) for predicate in predicates)
    except Exception as error:
        log_failed_attempt(logger, error, "a predicate failed, and the event passes")
        return True

"""Cache changes, and the watch events derived from them.

A watcher with a selector sees only matching objects:

    matched before   matches now    event      carries
    no               yes            ADDED      the new object
    yes              yes            MODIFIED   the new object
    yes              no, or gone    DELETED    the old object, at the revision of the change
    no               no             none
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from enum import StrEnum
from typing import TypeAlias

from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.apiserver.storage.object import Encodings, ObjectCodec, StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import annotations_of

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Predicate: TypeAlias = Callable[[StoredObject], bool]


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(Encodings):
    """A watch event, shared by all watchers with the same view of the change."""

    __slots__ = ("object", "revision", "size", "type")

    def __init__(self, type: EventType, object: StoredObject, revision: Revision) -> None:
        self.type = type
        self.object = object
        self.revision = revision
        self.size = object.size
        self._encoded = None

    def encoded(self, form: Hashable, make: Callable[[WatchEvent], bytes]) -> bytes:
        """Return the encoded event; encoded once per form, and shared."""
        if self._encoded is None:
            self._encoded = {}
        if form not in self._encoded:
            self._encoded[form] = make(self)
        return self._encoded[form]

    def __repr__(self) -> str:
        return f"WatchEvent({self.type} {self.object.key} @{self.revision})"


@dataclass(frozen=True, slots=True)
class CacheChange:
    """A change. `previous` is None for a create, `current` is None for a delete."""

    revision: Revision
    key: str
    current: StoredObject | None
    previous: StoredObject | None
    recorded: float


class ChangeEvents:
    """The watch events of one change, each created once.

    Events live while watchers have to send them, not while the change is in the window: otherwise the window would hold
    every object a second time, encoded.
    """

    __slots__ = ("_made", "_plain", "change")

    def __init__(self, change: CacheChange) -> None:
        self.change = change
        self._made: dict[EventType, WatchEvent] = {}
        self._plain: WatchEvent | None = None

    @property
    def plain(self) -> WatchEvent | None:
        """The event for watchers without a selector, the common case."""
        if self._plain is None:
            self._plain = self.through(None)
        return self._plain

    def through(self, predicate: Predicate | None) -> WatchEvent | None:
        """Return the event for a watcher with this predicate; None if the change is invisible."""
        current, previous = self.change.current, self.change.previous
        now = current is not None and (predicate is None or predicate(current))
        before = previous is not None and (predicate is None or predicate(previous))
        if now:
            return self._event(EventType.MODIFIED if before else EventType.ADDED)
        return self._event(EventType.DELETED) if before else None

    def _event(self, type: EventType) -> WatchEvent:
        event = self._made.get(type)
        if event is None:
            change = self.change
            shown = (
                change.previous.at(change.revision) if type is EventType.DELETED and change.previous else change.current
            )
            assert shown is not None
            event = self._made[type] = WatchEvent(type, shown, self.change.revision)
        return event


def bookmark(codec: ObjectCodec, revision: Revision, *, ends_initial_events: bool = False) -> WatchEvent:
    """Return a bookmark: an object with only a revision, without defaults."""
    empty = codec.empty()
    annotations = annotations_of(empty) | ({INITIAL_EVENTS_END: "true"} if ends_initial_events else {})
    value = codec.encode({**empty, "metadata": {"annotations": annotations} if annotations else {}})
    as_it_is = replace(codec, on_read=None)
    return WatchEvent(EventType.BOOKMARK, StoredObject(Entry("", value, 0, revision), as_it_is), revision)

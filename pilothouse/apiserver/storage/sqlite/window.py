"""The newest events, in memory: enough for watches that resume and for lists that continue, never without bound."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from pilothouse.apiserver.storage.interface import Event, Revision

_EVENTS = 8192
_BYTES = 16 * 1024 * 1024


class Window:
    """Consecutive events, up to the newest one.

    Every revision is one event, so the event of revision r stands at index r - first.
    """

    def __init__(self, revision: Revision, *, max_events: int = _EVENTS, max_bytes: int = _BYTES) -> None:
        self._events: list[Event] = []
        self._first = revision + 1
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes

    def extend(self, events: Sequence[Event]) -> None:
        self._events.extend(events)
        self._bytes += sum(map(_weight, events))
        if len(self._events) > self._max_events or self._bytes > self._max_bytes:
            self._forget()

    def covers(self, after: Revision) -> bool:
        """Whether every event behind `after` is here."""
        return after >= self._first - 1

    def after(self, revision: Revision) -> list[Event]:
        """The events behind `revision`, which must be covered."""
        return self._events[revision + 1 - self._first :]

    def _forget(self) -> None:
        """Drops the oldest half of what is allowed at once, so that the cost for each event stays constant."""
        keep = 0
        budget = self._max_bytes // 2
        for total in accumulate(map(_weight, reversed(self._events))):
            if keep == self._max_events // 2 or total > budget:
                break
            keep += 1
        gone = len(self._events) - keep
        self._bytes -= sum(map(_weight, self._events[:gone]))
        del self._events[:gone]
        self._first += gone


def _weight(event: Event) -> int:
    """The bytes that the event keeps alive, or will once its key is changed again."""
    entry, previous = event.entry, event.previous
    return (len(entry.value) if entry else 0) + (len(previous.value) if previous else 0)

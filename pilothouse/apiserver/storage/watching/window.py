"""A bounded window of recent events in memory, for resuming watches and continued lists."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from pilothouse.apiserver.storage.interface import Event, Revision

_EVENTS = 8192
_BYTES = 16 * 1024 * 1024


class EventWindow:
    """All events after `start`. A revision may have several events."""

    start: Revision

    def __init__(self, start: Revision, *, max_events: int = _EVENTS, max_bytes: int = _BYTES) -> None:
        self.start = start
        self._events: list[Event] = []
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes

    def extend(self, events: Sequence[Event]) -> None:
        self._events.extend(events)
        self._bytes += sum(map(weight, events))
        if len(self._events) > self._max_events or self._bytes > self._max_bytes:
            self._forget()

    def covers(self, after: Revision) -> bool:
        """Return whether the window has all events after the revision."""
        return after >= self.start

    def after(self, revision: Revision) -> list[Event]:
        """Return the events after the revision, which must be covered."""
        return self._events[bisect_right(self._events, revision, key=_revision) :]

    def reach_back(self, start: Revision, events: Sequence[Event]) -> None:
        """Extend the window back to `start` if there is room for all missing events."""
        missing = events[: bisect_right(events, self.start, key=_revision)]
        size = sum(map(weight, missing))
        if len(missing) + len(self._events) <= self._max_events and size + self._bytes <= self._max_bytes:
            self._events[:0] = missing
            self._bytes += size
            self.start = start

    def _forget(self) -> None:
        """Drop half of the capacity at once, for constant amortized cost."""
        keep, budget = 0, self._max_bytes // 2
        for total in accumulate(map(weight, reversed(self._events))):
            if keep == self._max_events // 2 or total > budget:
                break
            keep += 1
        self.start = self._events[len(self._events) - keep - 1].revision
        self._events = self.after(self.start)
        self._bytes = sum(map(weight, self._events))


def weight(event: Event) -> int:
    """Return the bytes that the event keeps alive, now or after the next change of its key."""
    entry, previous = event.entry, event.previous
    return (len(entry.value) if entry else 0) + (len(previous.value) if previous else 0)


def _revision(event: Event) -> Revision:
    return event.revision

"""Events of events.k8s.io/v1: the same thing said again is a series, which costs the server two writes.

The first event of its kind is created, the second makes it a series of two. Those after that are only counted; their
sum is written when the series is half an hour old, and when nothing was added to it for six minutes.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator

from pilothouse.client.clock import Clock, micro_time
from pilothouse.client.events.event import event_name
from pilothouse.client.events.lru import LRU
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

FINISHED_AFTER = 360.0
REFRESHED_EVERY = 1800.0
CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class Reporter:
    controller: str
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """What happened: the action that was taken, and why, in a word and in a sentence."""

    type: str
    reason: str
    action: str
    note: str


def new_series_event(reporter: Reporter, what: Occurrence, regarding: Json, related: Json | None, now: float) -> Json:
    """Return an event about references to objects; one about something without a namespace goes to "default"."""
    event = {
        "metadata": {"name": event_name(regarding["name"], now), "namespace": regarding.get("namespace") or "default"},
        "eventTime": micro_time(now),
        "reportingController": reporter.controller,
        "reportingInstance": reporter.instance,
        "action": what.action,
        "reason": what.reason,
        "regarding": regarding,
        "note": what.note,
        "type": what.type,
    }
    return event if related is None else {**event, "related": related}


@dataclass(slots=True)
class _Series:
    event: Json
    seen: float
    """When, by our clock, it was last said."""


class EventSeries:
    """What was said lately, by what makes events alike: everything but their note and time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: LRU[Hashable, _Series] = LRU(CACHE_SIZE)

    def add(self, event: Json) -> Json | None:
        """Return the event to write: a new one, or one that becomes a series; None if it was only counted."""
        names = ("type", "action", "reason", "reportingController", "reportingInstance")
        references = (tuple(sorted((event.get(name) or {}).items())) for name in ("regarding", "related"))
        known = self._known.get(key := (*(event[name] for name in names), *references))
        if known is None:
            self._known.put(key, _Series(event, self._clock.now()))
            return copy.deepcopy(event)
        known.seen = self._clock.now()
        series = known.event.get("series")
        known.event["series"] = {
            "count": series["count"] + 1 if series else 2,
            "lastObservedTime": micro_time(self._clock.wall()),
        }
        return None if series else copy.deepcopy(known.event)

    def running(self) -> Iterator[Json]:
        """Yield all series that have not ended."""
        for known in self._known.values():
            if known.event.get("series"):
                yield copy.deepcopy(known.event)

    def finished(self) -> Iterator[Json]:
        """Forget what was not said for a while, and yield those of it that are series."""
        for key, known in self._known.items():
            if known.seen < self._clock.now() - FINISHED_AFTER:
                self._known.drop(key)
                if known.event.get("series"):
                    yield known.event

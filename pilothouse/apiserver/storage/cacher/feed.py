"""Applies store events to state, window and watchers, atomically for readers."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.apiserver.storage.cacher.clock import CacheClock
from pilothouse.apiserver.storage.cacher.dispatch import CacheWatchers
from pilothouse.apiserver.storage.cacher.freshness import Freshness
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.readiness import Readiness
from pilothouse.apiserver.storage.cacher.state import CacheState
from pilothouse.apiserver.storage.cacher.window import ChangeWindow
from pilothouse.apiserver.storage.errors import Compacted, Undecodable
from pilothouse.apiserver.storage.interface import Entry, Event, Revision
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CacheFeed:
    """The sink of the reflector."""

    state: CacheState
    window: ChangeWindow
    watchers: CacheWatchers
    freshness: Freshness
    readiness: Readiness
    clock: CacheClock
    metrics: CacheMetrics

    def replace(self, entries: Sequence[Entry], revision: Revision) -> None:
        self.state.replace(entries)
        self.window.restart(revision)
        self.freshness.restart(revision)
        self.readiness.set_ready()
        self.metrics.initializations.inc()
        self.metrics.listed_from_storage(fetched=len(entries), evaluated=len(entries), returned=len(entries))
        self.metrics.reached(revision)

    def apply(self, events: Sequence[Event], revision: Revision) -> None:
        now = self.clock.time()
        for event in events:
            change = self.state.apply(event, now)
            if change is not None:
                self.window.add(change)
                self.watchers.dispatch(change)
        self.freshness.advance(revision)
        for counted in (self.metrics.stored_events, self.metrics.received, self.metrics.dispatched):
            counted.value += len(events)
        self.metrics.reached(revision)

    def progress(self, revision: Revision) -> None:
        self.freshness.progress(revision)
        self.metrics.reached(revision)

    def expire(self, revision: Revision) -> None:
        """Drop history before the revision."""
        self.window.restart(revision)
        self.watchers.expire(Compacted(revision - 1, revision))

    def lost(self, error: Exception) -> None:
        """End all watchers; clients resume from their last revision without gaps. Undecodable objects are reported to
        the watchers."""
        self.readiness.set_not_ready(error)
        self.freshness.invalidate()
        self.watchers.end_all(error if isinstance(error, Undecodable) else None)

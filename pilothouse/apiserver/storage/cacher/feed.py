"""Applies store events to state, window and watchers, atomically for readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.apiserver.storage.cacher.clock import CacheClock
from pilothouse.apiserver.storage.cacher.events import CacheChange, ChangeEvents, Predicate
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.readiness import Freshness, Readiness
from pilothouse.apiserver.storage.cacher.selection import LabelOrField, SelectionPredicate
from pilothouse.apiserver.storage.cacher.state import CacheState
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher, Pushes, WatchScope
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


class CacheWatchers:
    """Fan-out: delivers each change to the watchers of its scopes only.

    Every watcher has one scope. The scopes of a change are computed without visiting watchers:

        /registry/pods/             watchers of all namespaces
        /registry/pods/ns/          watchers of one namespace
        /registry/pods/ns/a         watchers of one object
        either of the first two, spec.nodeName, node-1
                                    watchers that select one value of a field or label, such as thousands of kubelets
    """

    _by_scope: dict[WatchScope, dict[CacheWatcher, None]]  # never empty
    _triggers: dict[str, dict[LabelOrField, int]]  # prefix → selected label or field → number of scopes
    _number: int  # of all watchers

    def __init__(self, prefix: str, metrics: CacheMetrics) -> None:
        self._prefix = prefix
        self._metrics = metrics
        self._by_scope = {}
        self._triggers = {}
        self._number = 0
        self.pushes = Pushes()

    def __len__(self) -> int:
        return self._number

    def scope(self, prefix: str, predicate: Predicate | None) -> WatchScope:
        """Return the narrowest scope for a watch of `prefix` with this predicate."""
        if not prefix.startswith(self._prefix):
            raise ValueError(f"{prefix} is not under {self._prefix}")
        if prefix.endswith("/") and isinstance(predicate, SelectionPredicate) and (exact := predicate.exact_match()):
            return WatchScope(prefix, *exact)
        return WatchScope(prefix)

    def add(self, watcher: CacheWatcher) -> None:
        scope = watcher.options.scope
        if scope not in self._by_scope:
            self._by_scope[scope] = {}
            self._count(scope, 1)
        watchers = self._by_scope[scope]
        self._number += watcher not in watchers
        watchers[watcher] = None

    def remove(self, watcher: CacheWatcher) -> None:
        scope = watcher.options.scope
        watchers = self._by_scope.get(scope, {})
        if watcher not in watchers:
            return
        del watchers[watcher]
        self._number -= 1
        if not watchers:
            del self._by_scope[scope]
            self._count(scope, -1)

    def dispatch(self, change: CacheChange) -> None:
        if not self._number:
            return
        views = ChangeEvents(change)
        for scope in self._scopes(change):
            # Copy: watchers that are full leave during the iteration.
            for watcher in tuple(self._by_scope.get(scope, ())):
                if not watcher.offer(views):
                    self._metrics.terminated.inc()

    def end_all(self, error: Exception | None = None) -> None:
        for watchers in tuple(self._by_scope.values()):
            for watcher in tuple(watchers):
                watcher.close(error)

    @property
    def followers_behind(self) -> int:
        """Return the number of non-expiring watchers with unread events."""
        everybody = (watcher for watchers in self._by_scope.values() for watcher in watchers)
        return sum(not watcher.options.expires and not watcher.is_read and not watcher.is_held for watcher in everybody)

    def expire(self, error: Exception) -> None:
        """Close the expiring watchers."""
        for watcher in [watcher for watchers in self._by_scope.values() for watcher in watchers]:
            if watcher.options.expires:
                watcher.close(error)

    def _count(self, scope: WatchScope, step: int) -> None:
        """Count the scope's trigger; objects are parsed only for triggers in use."""
        if scope.on is None:
            return
        triggers = self._triggers.setdefault(scope.prefix, {})
        triggers[scope.on] = triggers.get(scope.on, 0) + step
        if not triggers[scope.on]:
            del triggers[scope.on]
        if not triggers:
            del self._triggers[scope.prefix]

    def _scopes(self, change: CacheChange) -> Iterator[WatchScope]:
        namespace = change.key[: change.key.rindex("/") + 1]
        yield WatchScope(change.key)
        for prefix in {namespace, self._prefix}:
            yield WatchScope(prefix)
            for trigger in tuple(self._triggers.get(prefix, ())):
                yield from self._triggered(change, prefix, trigger)

    def _triggered(self, change: CacheChange, prefix: str, trigger: LabelOrField) -> Iterator[WatchScope]:
        """Yield the scopes of a trigger: two if the value changed, because watchers of the old value see the object
        leave."""
        try:
            values = {trigger.of(obj) for obj in (change.current, change.previous) if obj is not None}
        except Exception:  # an undecodable object may have any value; `offer` closes the watchers that need it
            yield from [scope for scope in self._by_scope if (scope.prefix, scope.on) == (prefix, trigger)]
            return
        yield from (WatchScope(prefix, trigger, value) for value in values if value is not None)

"""Fan-out: delivers each change to the watchers of its scopes only.

Every watcher has one scope. The scopes of a change are computed without visiting watchers:

    /registry/pods/             watchers of all namespaces
    /registry/pods/ns/          watchers of one namespace
    /registry/pods/ns/a         watchers of one object
    either of the first two, spec.nodeName, node-1
                                watchers that select one value of a field or label, such as thousands of kubelets
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.apiserver.storage.cacher.events import CacheChange, ChangeEvents, Predicate
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.selection_predicate import LabelOrField, SelectionPredicate
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher, WatchScope


class CacheWatchers:
    _by_scope: dict[WatchScope, dict[CacheWatcher, None]]  # never empty
    _triggers: dict[str, dict[LabelOrField, int]]  # prefix → selected label or field → number of scopes

    def __init__(self, prefix: str, metrics: CacheMetrics) -> None:
        self._prefix = prefix
        self._metrics = metrics
        self._by_scope = {}
        self._triggers = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_scope.values()))

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
        self._by_scope[scope][watcher] = None

    def remove(self, watcher: CacheWatcher) -> None:
        scope = watcher.options.scope
        watchers = self._by_scope.get(scope, {})
        if watcher not in watchers:
            return
        del watchers[watcher]
        if not watchers:
            del self._by_scope[scope]
            self._count(scope, -1)

    def dispatch(self, change: CacheChange) -> None:
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
        return sum(not watcher.options.expires and not watcher.is_read for watcher in everybody)

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

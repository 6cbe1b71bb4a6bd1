"""Fan-out: each change goes to the watchers that it can concern, and to no others.

Every watcher stands in one scope, a string. A change has a few scopes, found without looking at any watcher:

    /registry/pods/             those who watch everything
    /registry/pods/ns/          those who watch one namespace
    /registry/pods/ns/a         those who watch one object
    either of the first two, NUL, node-1
                                those of them who select one value of the trigger field, as thousands of kubelets do
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pilothouse.apiserver.storage.cacher.events import Change, Views
from pilothouse.apiserver.storage.cacher.metrics import CacheMetrics
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher


class CacheWatchers:
    _by_scope: dict[str, dict[CacheWatcher, None]]  # no scope is empty

    def __init__(self, prefix: str, *, trigger: str, metrics: CacheMetrics) -> None:
        self._prefix = prefix
        self._trigger = trigger
        self._metrics = metrics
        self._by_scope = {}
        self._triggered = 0  # how many stand in a scope of the trigger field; objects are parsed only for them

    def __len__(self) -> int:
        return sum(map(len, self._by_scope.values()))

    def scope(self, prefix: str, value: str | None) -> str:
        """The scope for a watch of `prefix` that selects this value of the trigger field, if it selects one."""
        if not prefix.startswith(self._prefix):
            raise ValueError(f"{prefix} is not under {self._prefix}")
        if value is None or not prefix.endswith("/"):
            return prefix
        if not self._trigger:
            raise ValueError(f"{self._prefix} has no trigger field")
        return f"{prefix}\0{value}"

    def add(self, watcher: CacheWatcher) -> None:
        self._by_scope.setdefault(watcher.options.scope, {})[watcher] = None
        self._triggered += "\0" in watcher.options.scope

    def remove(self, watcher: CacheWatcher) -> None:
        scope = watcher.options.scope
        watchers = self._by_scope.get(scope, {})
        if watcher not in watchers:
            return
        del watchers[watcher]
        if not watchers:
            del self._by_scope[scope]
        self._triggered -= "\0" in scope

    def dispatch(self, change: Change) -> None:
        views = Views(change)
        for scope in self._scopes(change):
            # A copy, because watchers that are full leave while it is gone through.
            for watcher in tuple(self._by_scope.get(scope, ())):
                if not watcher.offer(views):
                    self._metrics.terminated.inc()

    def end_all(self, error: Exception | None = None) -> None:
        for watchers in tuple(self._by_scope.values()):
            for watcher in tuple(watchers):
                watcher.close(error)

    def _scopes(self, change: Change) -> Iterator[str]:
        namespace = change.key[: change.key.rindex("/") + 1]
        yield change.key
        for prefix in {namespace, self._prefix}:
            yield prefix
            if self._triggered:
                yield from {f"{prefix}\0{value}" for value in self._trigger_values(change)}

    def _trigger_values(self, change: Change) -> Iterator[str]:
        """Two when the value changed: the watchers of the old one have to see the object leave."""
        for obj in (change.current, change.previous):
            # An object that can not be read has no value; whoever must look at it is ended in `offer`.
            with suppress(Exception):
                if obj is not None:
                    yield obj.fields.get(self._trigger, "")

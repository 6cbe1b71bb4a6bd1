"""Live watches, indexed by prefix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Event


class StoreWatcher(Protocol):
    prefix: str

    def push(self, event: Event) -> None: ...

    def tell_progress(self) -> None: ...

    def end(self, reason: StorageError) -> None: ...


class StoreWatchers:
    def __init__(self) -> None:
        self._by_prefix: dict[str, dict[StoreWatcher, None]] = {}
        self._lengths: tuple[int, ...] = ()  # lengths of the rare prefixes without a trailing slash

    def add(self, watcher: StoreWatcher) -> None:
        self._by_prefix.setdefault(watcher.prefix, {})[watcher] = None
        self._measure()

    def discard(self, watcher: StoreWatcher) -> None:
        same = self._by_prefix.get(watcher.prefix, {})
        same.pop(watcher, None)
        if not same:
            self._by_prefix.pop(watcher.prefix, None)
            self._measure()

    def publish(self, events: Iterable[Event]) -> None:
        for event in events:
            for watcher in self._concerned(event.key):
                watcher.push(event)

    def end_all(self, reason: StorageError) -> None:
        for same in list(self._by_prefix.values()):
            for watcher in list(same):
                watcher.end(reason)

    def _measure(self) -> None:
        self._lengths = tuple({len(prefix) for prefix in self._by_prefix if not prefix.endswith("/")})

    def _concerned(self, key: str) -> Iterator[StoreWatcher]:
        """Yield the watchers of a key by looking up its prefixes, faster than comparing with each prefix."""
        ends = [length for length in self._lengths if length <= len(key) and key[length - 1 : length] != "/"]
        end = key.find("/") + 1
        while end:
            ends.append(end)
            end = key.find("/", end) + 1
        for end in ends:
            # Copy: watchers that fall behind leave.
            yield from tuple(self._by_prefix.get(key[:end], ()))

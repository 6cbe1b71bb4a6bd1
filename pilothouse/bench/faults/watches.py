"""The events of a watch that a fault concerns: cut off, left out, sent twice, or late."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from pilothouse.apiserver.http import StreamBroken
from pilothouse.apiserver.storage.cacher.events import EventType, WatchEvent
from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Store
from pilothouse.machinery.objects import Json

_LOOK_EVERY: Final = 0.01


class FaultyWatcher(CacheWatcher):
    """What a stream reads from in the place of the watch itself, which goes on to get its events from the cache."""

    def __init__(self, watcher: CacheWatcher, effect: Json, store: Store, cut: Callable[[], None]) -> None:
        # Nothing of the base is used but its type: all that a reader calls is here.
        given = effect.get("watch") or {}
        self._watcher = watcher
        self._store = store
        self._cut = cut
        self._cut_after: int | None = given.get("cutAfterEvents")
        self._expire_after: int | None = given.get("expireAfterEvents")
        self._drop: int = given.get("dropEvery") or 0
        self._duplicate: int = given.get("duplicateEvery") or 0
        self._lag: int = effect.get("staleByRevisions") or 0
        self._again: deque[WatchEvent] = deque()
        self._seen = 0
        self._last = 0

    def __aiter__(self) -> FaultyWatcher:
        return self

    async def __anext__(self) -> WatchEvent:
        """Raises StreamBroken where the connection is cut, Compacted where the watch ends as after a compaction."""
        if self._again:
            return self._again.popleft()
        while True:
            if self._cut_after is not None and self._seen >= self._cut_after:
                self._cut()
                raise StreamBroken("a Fault cut the watch")
            if self._expire_after is not None and self._seen >= self._expire_after:
                raise Compacted(self._last, await self._store.current_revision())
            event = await self._watcher.__anext__()
            if self._lag:
                await self._late(event)
            self._last = event.revision
            if event.type == EventType.BOOKMARK:
                return event
            self._seen += 1
            if self._duplicate and self._seen % self._duplicate == 0:
                self._again.append(event)
            if not (self._drop and self._seen % self._drop == 0):
                return event

    def drain(self) -> list[WatchEvent]:
        """Return nothing: events are read one by one, so that each is looked at."""
        return []

    def close(self, error: Exception | None = None) -> None:
        self._watcher.close(error)

    def abandon(self) -> None:
        """Its reader is gone."""
        self._watcher.abandon()

    async def _late(self, event: WatchEvent) -> None:
        """Return when the store has gone on by as many revisions as the watch is to lag behind."""
        while await self._store.current_revision() < event.revision + self._lag:
            if self._watcher.closed:
                raise StopAsyncIteration
            await asyncio.sleep(_LOOK_EVERY)

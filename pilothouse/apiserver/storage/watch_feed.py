"""A feed: all changes of a store in order over one stream, serving every watch of a process.

A feed sees every change, so its progress is the progress of all its watches, whatever their keys. A watch that starts
before the window, or falls behind it, replays old events from the store.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Batch, Event, Revision
from pilothouse.apiserver.storage.watching import EventWindow, QueuedWatch, StoreWatcher, StoreWatchers

_WINDOW_BYTES = 32 * 1024 * 1024


class WatchFeed(ABC):
    reached: Revision  # every event up to here was delivered
    _expecting: dict[StoreWatcher, Revision]  # watcher → revision whose arrival it awaits

    def __init__(self, reached: Revision = 0) -> None:
        self._watchers = StoreWatchers()
        self._expecting = {}
        self._begin(reached)

    @property
    @abstractmethod
    def is_current(self) -> bool:
        """Return whether the feed has reached the newest revision known to this process."""

    @abstractmethod
    def ensure_running(self) -> None:
        """Start the feed if not running. Raises Unavailable."""

    @abstractmethod
    async def replay(self, prefix: str, after: Revision) -> Batch:
        """Return the oldest events after the revision from the store. Raises Compacted."""

    @abstractmethod
    async def current_revision(self) -> Revision:
        """Return the store's current revision."""

    def join(self, watcher: StoreWatcher, after: Revision) -> list[Event] | None:
        """Return the events after the revision; later events are pushed. None if memory lacks some. Raises
        Unavailable."""
        self.ensure_running()
        if not self._window.covers(after):
            return None
        self._watchers.add(watcher)
        return [event for event in self._window.after(after) if event.key.startswith(watcher.prefix)]

    def leave(self, watcher: StoreWatcher) -> None:
        self._watchers.discard(watcher)
        self._expecting.pop(watcher, None)

    async def expect(self, revision: Revision, watcher: StoreWatcher) -> None:
        """Notify the watcher when the feed reaches the revision."""
        if self.reached >= revision:
            watcher.tell_progress()
        else:
            self._expecting[watcher] = max(revision, self._expecting.get(watcher, 0))

    def _begin(self, reached: Revision) -> None:
        self.reached = reached
        self._window = EventWindow(reached, max_bytes=_WINDOW_BYTES)

    def _publish(self, batch: Batch) -> None:
        self._window.extend(batch.events)
        self._watchers.publish(batch.events)
        self.reached = batch.revision
        for watcher, revision in list(self._expecting.items()):
            if revision <= self.reached:
                del self._expecting[watcher]
                watcher.tell_progress()

    def end(self, error: StorageError) -> None:
        """End all watches."""
        self._watchers.end_all(error)
        self._expecting.clear()


class FeedWatch(QueuedWatch):
    """A watch served by a feed."""

    def __init__(self, feed: WatchFeed, *, prefix: str, after: Revision) -> None:
        self._feed = feed
        super().__init__(prefix=prefix, after=after)

    async def request_progress(self) -> None:
        """Report the locally known progress at once, and the store's progress once reached. Raises Unavailable."""
        told = 0
        if self._live and self._feed.is_current and self._feed.reached > self._reached:
            told = self._feed.reached
            self.tell_progress()
        current = await self._feed.current_revision()
        if told < current:
            await self._feed.expect(current, self)

    @property
    def _newest(self) -> Revision:
        return self._feed.reached

    def _join(self) -> list[Event] | None:
        return self._feed.join(self, self._reached)

    def _leave(self) -> None:
        self._feed.leave(self)

    async def _replay(self) -> Batch | None:
        replaying = asyncio.create_task(self._feed.replay(self.prefix, self._reached))
        replaying.add_done_callback(self._replayed)
        try:
            while not replaying.done() and self._ended is None:
                await self._wait()
        finally:
            replaying.cancel()
        return replaying.result() if self._ended is None else None

    def _replayed(self, replaying: asyncio.Task[Batch]) -> None:
        if not replaying.cancelled():
            replaying.exception()  # irrelevant if the watch has ended meanwhile
        self._wake()

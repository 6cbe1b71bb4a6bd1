"""The feed of a worker, pushed by the store process."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.storage.errors import Compacted, StorageError
from pilothouse.apiserver.storage.interface import Batch, Event, Revision
from pilothouse.apiserver.storage.remote.messages import Message, unpack_events
from pilothouse.apiserver.storage.remote.requests import StoreRequests
from pilothouse.apiserver.storage.remote.revisions import SharedRevisions
from pilothouse.apiserver.storage.watching.feed import WatchFeed
from pilothouse.apiserver.storage.watching.watchers import StoreWatcher


class RemoteFeed(WatchFeed):
    """Starts at the first revision from the store process, then sets `begun`."""

    def __init__(self, requests: StoreRequests, revisions: SharedRevisions) -> None:
        super().__init__()
        self._requests = requests
        self._revisions = revisions
        self.begun = asyncio.Event()

    @property
    def is_current(self) -> bool:
        return self.reached >= self._revisions.current

    def ensure_running(self) -> None:
        self._requests.ensure_open()

    def join(self, watcher: StoreWatcher, after: Revision) -> list[Event] | None:
        """Join the feed. Raises Compacted or Unavailable."""
        if after < self._revisions.compacted:
            raise Compacted(after, self._revisions.compacted)
        return super().join(watcher, after)

    async def current_revision(self) -> Revision:
        return self._revisions.current

    async def replay(self, prefix: str, after: Revision) -> Batch:
        revision, events = await self._requests.ask("replay", prefix, after)
        return Batch(revision, unpack_events(events))

    def receive(self, revision: Revision, packed: list[Message]) -> None:
        if self.begun.is_set():
            self._publish(Batch(revision, unpack_events(packed)))
        else:
            self._begin(revision)
            self.begun.set()

    def end(self, error: StorageError) -> None:
        super().end(error)
        self.begun.set()

"""Watches of etcd: the feed serves all of them, and what it has no longer is read from etcd."""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.storage.etcd.feed import EtcdFeed
from pilothouse.apiserver.storage.interface import Batch, Event, Revision
from pilothouse.apiserver.storage.watching.queued_watch import QueuedWatch

# Like every etcd, an empty one is at this revision.
_EMPTY = 1


class EtcdWatch(QueuedWatch):
    def __init__(self, feed: EtcdFeed, *, prefix: str, after: Revision) -> None:
        if not prefix.startswith(feed.own):
            raise ValueError(f"{prefix} is outside of {feed.own}, whose changes this store follows")
        self._feed = feed
        super().__init__(prefix=prefix, after=max(after, _EMPTY))

    async def request_progress(self) -> None:
        """Tell the progress that this process knows of at once, and that of etcd, if it is more, when it is reached.

        Raises Unavailable.
        """
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
            replaying.exception()  # of no interest if the watch has ended meanwhile
        self._wake()

"""Watches: every change after a revision, once, in order, however slow the reader is.

A watch is *live* when the feed puts every later event that concerns it into its queue, or *behind* when it reads old
events from etcd. It starts behind, comes alive when memory has all that it still lacks, and falls behind again when
its queue is full: memory for each watch is bounded, and the feed waits for nobody.
"""

from __future__ import annotations

import asyncio

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.etcd.feed import Feed
from pilothouse.apiserver.storage.interface import Batch, Event, Revision

# Events that wait for a live watch before it falls behind.
QUEUE_LIMIT = 1024

# Like every etcd, an empty one is at this revision.
_EMPTY = 1


class EtcdWatch:
    """One watch. Only one task may iterate it; a cancelled iteration loses nothing."""

    _queue: list[Event]  # to be delivered next, in order
    _reached: Revision  # every event up to here was delivered or, unless live, is in _queue

    def __init__(self, feed: Feed, *, prefix: str, after: Revision) -> None:
        if not prefix.startswith(feed.own):
            raise ValueError(f"{prefix} is outside of {feed.own}, whose changes this store follows")
        self.prefix = prefix
        self._feed = feed
        self._queue = []
        self._reached = max(after, _EMPTY)
        self._live = False
        self._progress_due = False
        self._ended: StorageError | StopAsyncIteration | None = None
        self._waiter: asyncio.Future[None] | None = None
        try:
            self._go_live()
        except StorageError as error:
            self.end(error)

    def __aiter__(self) -> EtcdWatch:
        return self

    async def __anext__(self) -> Batch:
        while not self._queue and not (self._live and self._progress_due):
            if self._ended is not None:
                raise self._ended
            await self._advance()
        return self._take()

    async def request_progress(self) -> None:
        """What this process knows to be current may be told at once; what is current in etcd follows, if it is more.
        Raises Unavailable."""
        told = 0
        if self._live and self._feed.is_current and self._feed.reached > self._reached:
            told = self._feed.reached
            self.tell_progress()
        current = await self._feed.current_revision()
        if told < current:
            await self._feed.expect(current, self)

    async def aclose(self) -> None:
        self._queue.clear()
        self.end(StopAsyncIteration())

    def push(self, event: Event) -> None:
        """Takes the next event of the feed that concerns this live watch."""
        if event.revision <= self._reached:
            return
        # A revision that has begun is finished, for it can not be resumed in the middle.
        if len(self._queue) >= QUEUE_LIMIT and self._queue[-1].revision < event.revision:
            self._fall_behind(event.revision - 1)
            return
        self._queue.append(event)
        self._wake()

    def tell_progress(self) -> None:
        self._progress_due = True
        self._wake()

    def end(self, reason: StorageError | StopAsyncIteration) -> None:
        """Delivers what is queued, then stops for the reason."""
        if self._ended is None:
            self._ended = reason
        if self._live:
            self._fall_behind(self._feed.reached)
        self._wake()

    def _take(self) -> Batch:
        events, self._queue = tuple(self._queue), []
        if not self._live:
            return Batch(self._reached, events)
        self._progress_due = False
        self._reached = max(self._reached, self._feed.reached)
        return Batch(self._feed.reached, events)

    async def _advance(self) -> None:
        """Waits for more when live; otherwise takes a step towards it."""
        if self._live:
            await self._wait()
            return
        try:
            if not self._go_live():
                await self._replay()
        except StorageError as error:
            self.end(error)

    def _go_live(self) -> bool:
        events = self._feed.join(self, self._reached)
        if events is None:
            return False
        self._queue.extend(events)
        self._live = True
        return True

    async def _replay(self) -> None:
        replaying = asyncio.create_task(self._feed.replay(self.prefix, self._reached))
        replaying.add_done_callback(self._replayed)
        try:
            while not replaying.done() and self._ended is None:
                await self._wait()
        finally:
            replaying.cancel()
        if self._ended is None:
            batch = replaying.result()
            self._queue.extend(batch.events)
            self._reached = batch.revision

    def _replayed(self, replaying: asyncio.Task[Batch]) -> None:
        if not replaying.cancelled():
            replaying.exception()  # of no interest if the watch has ended meanwhile
        self._wake()

    def _fall_behind(self, reached: Revision) -> None:
        self._reached = max(self._reached, reached)
        self._live = False
        self._feed.leave(self)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

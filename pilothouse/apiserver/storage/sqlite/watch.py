"""Watches: every change after a revision, once, in order, however slow the reader is.

A watch is *live* when every later event that concerns it is put into its queue as it is published, or *behind* when
it reads history from where it stands. It starts behind, comes alive when memory has all that it still lacks, and
falls behind again when its queue is full: memory for each watch is bounded, and nobody waits for a slow one.
Going live and publishing both happen on the event loop without a pause, so no event falls between the two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from pilothouse.apiserver.storage.errors import Compacted, StorageError
from pilothouse.apiserver.storage.interface import Batch, Event, Revision
from pilothouse.apiserver.storage.sqlite.chronicle import Chronicle

# Events that wait for a live watch before it falls behind.
QUEUE_LIMIT = 1024


class Watchers:
    """The live watches, found by the keys that they watch."""

    def __init__(self) -> None:
        self._by_prefix: dict[str, dict[StoreWatch, None]] = {}
        self._lengths: tuple[int, ...] = ()  # of the prefixes: looking a key's up beats comparing it with each

    def add(self, watch: StoreWatch) -> None:
        self._by_prefix.setdefault(watch.prefix, {})[watch] = None
        self._lengths = tuple({len(prefix) for prefix in self._by_prefix})

    def discard(self, watch: StoreWatch) -> None:
        same = self._by_prefix.get(watch.prefix, {})
        same.pop(watch, None)
        if not same:
            self._by_prefix.pop(watch.prefix, None)
            self._lengths = tuple({len(prefix) for prefix in self._by_prefix})

    def publish(self, events: Sequence[Event]) -> None:
        for event in events:
            for watch in self._concerned(event.key):
                watch.push(event)

    def end_all(self, reason: StorageError) -> None:
        for same in list(self._by_prefix.values()):
            for watch in list(same):
                watch.end(reason)

    def _concerned(self, key: str) -> Iterator[StoreWatch]:
        for length in self._lengths:
            if length <= len(key):
                # A copy, because a watch that falls behind leaves.
                yield from tuple(self._by_prefix.get(key[:length], ()))


class StoreWatch:
    """One watch. Only one task may iterate it; a cancelled iteration loses nothing."""

    _queue: list[Event]  # to be delivered next, in order
    _reached: Revision  # every event up to here was delivered or, unless live, is in _queue

    def __init__(self, chronicle: Chronicle, watchers: Watchers, *, prefix: str, after: Revision) -> None:
        self.prefix = prefix
        self._chronicle = chronicle
        self._watchers = watchers
        self._queue = []
        self._reached = after
        self._live = False
        self._progress_wanted = False
        self._ended: StorageError | StopAsyncIteration | None = None
        self._waiter: asyncio.Future[None] | None = None
        if chronicle.is_open and after >= chronicle.compacted:
            self._go_live()

    def __aiter__(self) -> StoreWatch:
        return self

    async def __anext__(self) -> Batch:
        while not self._queue and not (self._live and self._progress_wanted):
            if self._ended is not None:
                raise self._ended
            await self._advance()
        return self._take()

    async def request_progress(self) -> None:
        self._progress_wanted = True
        self._wake()

    async def aclose(self) -> None:
        self._queue.clear()
        self.end(StopAsyncIteration())

    def push(self, event: Event) -> None:
        """Takes a newly published event that concerns this live watch."""
        if event.revision <= self._reached:
            return
        if len(self._queue) >= QUEUE_LIMIT:
            self._fall_behind(event.revision - 1)
            return
        self._queue.append(event)
        self._wake()

    def end(self, reason: StorageError | StopAsyncIteration) -> None:
        """Delivers what is queued, then stops for the reason."""
        if self._ended is None:
            self._ended = reason
        if self._live:
            self._fall_behind(self._chronicle.revision)
        self._wake()

    def _take(self) -> Batch:
        events, self._queue = tuple(self._queue), []
        if not self._live:
            return Batch(self._reached, events)
        self._progress_wanted = False
        self._reached = max(self._reached, self._chronicle.revision)
        return Batch(self._chronicle.revision, events)

    async def _advance(self) -> None:
        """Waits for more when live; otherwise takes a step towards it."""
        if self._live:
            await self._wait()
            return
        try:
            await self._catch_up()
        except StorageError as error:
            self.end(error)

    async def _catch_up(self) -> None:
        self._chronicle.ensure_open()
        if self._reached < self._chronicle.compacted:
            raise Compacted(self._reached, self._chronicle.compacted)
        if self._go_live():
            return
        replayed = await self._chronicle.replay(self.prefix, self._reached)
        if self._ended is None:
            self._queue.extend(replayed.events)
            self._reached = replayed.revision

    def _go_live(self) -> bool:
        events = self._chronicle.recent(self.prefix, self._reached)
        if events is None:
            return False
        self._queue.extend(events)
        self._live = True
        self._watchers.add(self)
        return True

    def _fall_behind(self, reached: Revision) -> None:
        self._reached = reached
        self._live = False
        self._watchers.discard(self)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

"""Watches of a store: every change after a revision, once, in order, for readers of any speed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Protocol, Self

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Batch, Event, Revision

# Queued events of a live watch before it falls behind.
QUEUE_LIMIT = 1024


class QueuedWatch(ABC):
    """A watch, iterated by one task; a cancelled iteration loses nothing.

    A watch is *live* while events are pushed into its queue, or *behind* while it reads old events. It starts behind,
    becomes live when memory has all missing events, and falls behind again when its queue is full: memory per watch is
    bounded, and slow readers block no one.
    """

    _queue: list[Event]  # next deliveries, in order
    _reached: Revision  # every event up to here was delivered or, unless live, is in _queue

    def __init__(self, *, prefix: str, after: Revision) -> None:
        self.prefix = prefix
        self._queue = []
        self._reached = after
        self._live = False
        self._progress_due = False
        self._ended: StorageError | StopAsyncIteration | None = None
        self._waiter: asyncio.Future[None] | None = None
        try:
            self._go_live()
        except StorageError as error:
            self.end(error)

    @property
    @abstractmethod
    def _newest(self) -> Revision:
        """Return the revision up to which a live watch has received all pushes."""

    @abstractmethod
    def _join(self) -> list[Event] | None:
        """Join the feed, and return the events after `_reached`; None if memory lacks some. There is no await between
        reading memory and the first push, so no event is missed. Raises StorageError."""

    @abstractmethod
    def _leave(self) -> None:
        """Leave the feed; pushes stop."""

    @abstractmethod
    async def _replay(self) -> Batch | None:
        """Return the oldest events after `_reached`; None if the watch ended meanwhile. Raises StorageError."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        while not self._queue and not (self._live and self._progress_due):
            if self._ended is not None:
                raise self._ended
            await self._advance()
        events, self._queue = tuple(self._queue), []
        if not self._live:
            return Batch(self._reached, events)
        self._progress_due = False
        self._reached = max(self._reached, self._newest)
        return Batch(self._newest, events)

    async def aclose(self) -> None:
        self._queue.clear()
        self.end(StopAsyncIteration())

    def push(self, event: Event) -> None:
        """Queue the next event of a live watch."""
        if event.revision <= self._reached:
            return
        # A started revision is completed, because a watch cannot resume within a revision.
        if len(self._queue) >= QUEUE_LIMIT and self._queue[-1].revision < event.revision:
            self._fall_behind(event.revision - 1)
            return
        self._queue.append(event)
        self._wake()

    def tell_progress(self) -> None:
        self._progress_due = True
        self._wake()

    def end(self, reason: StorageError | StopAsyncIteration) -> None:
        """End the watch for the reason, after its queued events."""
        if self._ended is None:
            self._ended = reason
        if self._live:
            self._fall_behind(self._newest)
        self._wake()

    async def _advance(self) -> None:
        """Wait for events if live; otherwise take a step towards being live."""
        if self._live:
            await self._wait()
            return
        try:
            replayed = None if self._go_live() else await self._replay()
        except StorageError as error:
            self.end(error)
            return
        if replayed is not None and self._ended is None:
            self._queue.extend(replayed.events)
            self._reached = replayed.revision

    def _go_live(self) -> bool:
        events = self._join()
        if events is None:
            return False
        self._queue.extend(events)
        self._live = True
        return True

    def _fall_behind(self, reached: Revision) -> None:
        self._reached = max(self._reached, reached)
        self._live = False
        self._leave()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class StoreWatcher(Protocol):
    prefix: str

    def push(self, event: Event) -> None: ...

    def tell_progress(self) -> None: ...

    def end(self, reason: StorageError) -> None: ...


class StoreWatchers:
    """Live watches, indexed by prefix."""

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


_EVENTS = 8192
_BYTES = 16 * 1024 * 1024


class EventWindow:
    """A bounded window of recent events in memory, for resuming watches and continued lists."""

    start: Revision

    def __init__(self, start: Revision, *, max_events: int = _EVENTS, max_bytes: int = _BYTES) -> None:
        self.start = start
        self._events: list[Event] = []
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes

    def extend(self, events: Sequence[Event]) -> None:
        self._events.extend(events)
        self._bytes += sum(map(weight, events))
        if len(self._events) > self._max_events or self._bytes > self._max_bytes:
            # Drop half of the capacity at once, for constant amortized cost.
            keep, budget = 0, self._max_bytes // 2
            for total in accumulate(map(weight, reversed(self._events))):
                if keep == self._max_events // 2 or total > budget:
                    break
                keep += 1
            self.start = self._events[len(self._events) - keep - 1].revision
            self._events = self.after(self.start)
            self._bytes = sum(map(weight, self._events))

    def covers(self, after: Revision) -> bool:
        """Return whether the window has all events after the revision."""
        return after >= self.start

    def after(self, revision: Revision) -> list[Event]:
        """Return the events after the revision, which must be covered."""
        return self._events[bisect_right(self._events, revision, key=_revision) :]

    def reach_back(self, start: Revision, events: Sequence[Event]) -> None:
        """Extend the window back to `start` if there is room for all missing events."""
        missing = events[: bisect_right(events, self.start, key=_revision)]
        size = sum(map(weight, missing))
        if len(missing) + len(self._events) <= self._max_events and size + self._bytes <= self._max_bytes:
            self._events[:0] = missing
            self._bytes += size
            self.start = start


def weight(event: Event) -> int:
    """Return the bytes that the event keeps alive, now or after the next change of its key."""
    entry, previous = event.entry, event.previous
    return (len(entry.value) if entry else 0) + (len(previous.value) if previous else 0)


def _revision(event: Event) -> Revision:
    return event.revision

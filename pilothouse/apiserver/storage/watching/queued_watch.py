"""Queued watches: every change after a revision, once, in order, for readers of any speed.

A watch is *live* while events are pushed into its queue, or *behind* while it reads old events. It starts behind,
becomes live when memory has all missing events, and falls behind again when its queue is full: memory per watch is
bounded, and slow readers block no one.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Self

from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.apiserver.storage.interface import Batch, Event, Revision

# Queued events of a live watch before it falls behind.
QUEUE_LIMIT = 1024


class QueuedWatch(ABC):
    """A watch, iterated by one task; a cancelled iteration loses nothing."""

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

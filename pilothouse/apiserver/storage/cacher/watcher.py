"""One watch: a queue that the cache fills and one client empties.

Events come out in revision order, each once, without a gap: first the backlog (the state or the changes that the
watch starts with), then the live ones. The backlog is a sequence of references which is turned into events only as
fast as it is read. Live events are queued up to a number and up to a size; a watcher that is full ends after what it
holds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, NoReturn

from pilothouse.apiserver.storage.cacher.events import CacheChange, ChangeEvents, EventType, Predicate, WatchEvent
from pilothouse.apiserver.storage.cacher.pages import CacheKeyRange
from pilothouse.apiserver.storage.cacher.selection_predicate import LabelOrField
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop

LIVE_BYTES = 16 * 1024 * 1024  # of objects that wait for a reader; one alone may have more
_CHUNK = 250  # of the backlog at a time: what a client is sent in one go, and how long it keeps others waiting


@dataclass(frozen=True, slots=True)
class WatchStart:
    """Where a watch starts: it sees `objects` as ADDED, then `end` if there is one, then those of `changes` that are
    under its prefix, then every live event after `revision`."""

    revision: Revision
    objects: Sequence[StoredObject] = ()
    end: WatchEvent | None = None
    changes: Sequence[CacheChange] = ()

    def events(self, keys: CacheKeyRange, predicate: Predicate | None) -> Iterator[WatchEvent | None]:
        """None stands for what is not meant, so that a reader can stop after a bounded amount of work."""
        for obj in self.objects:
            yield WatchEvent(EventType.ADDED, obj, obj.revision) if predicate is None or predicate(obj) else None
        if self.end is not None:
            yield self.end
        for change in self.changes:
            yield ChangeEvents(change).through(predicate) if change.key in keys else None


class WatchScope(NamedTuple):
    """The objects that can concern a watch: those under the prefix (or the one with that key) which have the value."""

    prefix: str
    on: LabelOrField | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The wishes of the owner of a watch."""

    prefix: str
    scope: WatchScope
    predicate: Predicate | None = None
    bookmarks: bool = False
    deadline: float | None = None
    expires: bool = False
    """Whether it ends when the past is forgotten. It need not, for it misses nothing: clients are to find out."""


class CacheWatcher:
    """Read by one task: `async for event in watcher`, and `drain()` for what else is ready by then."""

    _backlog: Iterator[WatchEvent | None] | None  # not yet turned into events; comes before everything live
    _early: deque[WatchEvent]  # taken from the backlog, not yet read
    _live: deque[WatchEvent]  # dispatched, not yet read
    _live_bytes: int  # of their objects

    def __init__(
        self, options: WatchOptions, start: WatchStart, *, limit: int, forget: Callable[[CacheWatcher], None]
    ) -> None:
        self.options = options
        self.closed = False
        self._predicate = options.predicate
        self._start = start.revision
        self._limit = limit
        self._forget = forget
        self._backlog = start.events(CacheKeyRange.of(options.prefix), options.predicate)
        self._early = deque()
        self._live = deque()
        self._live_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        self._error: Exception | None = None

    def offer(self, views: ChangeEvents) -> bool:
        """Queues what this watcher sees of a live change. False: it was full, and is closed now."""
        try:
            event = views.plain if self._predicate is None else views.through(self._predicate)
        except Exception as error:  # an object that can not be read ends the watches that have to look at it
            self.close(error)
            return True
        return event is None or self.put(event)

    def put(self, event: WatchEvent) -> bool:
        if event.revision <= self._start:
            return True
        size = self._live_bytes + event.size
        if len(self._live) >= self._limit or (size > LIVE_BYTES and self._live):
            self.close()
            return False
        self._live_bytes = size
        self._live.append(event)
        if self._reader is not None:
            self._wake(self._reader)
        return True

    def put_bookmark(self, event: WatchEvent) -> None:
        """A bookmark is only a favour: it is left out when there is no room for it."""
        if len(self._live) < self._limit and self._live_bytes + event.size <= LIVE_BYTES:
            self.put(event)

    def drain(self) -> list[WatchEvent]:
        """The events that are ready now, a bounded number of them. Empty: none are ready, or more work is needed."""
        self._advance()
        events = list(self._early)
        self._early.clear()
        if self._backlog is None:
            events.extend(self._live)
            self._forget_live()
        return events

    def close(self, error: Exception | None = None) -> None:
        """Takes no more events. Those that were taken can still be read; then iteration ends, or raises the error."""
        if not self.closed:
            self.closed = True
            self._error = error
            self._forget(self)
        if self._reader is not None:
            self._wake(self._reader)

    @property
    def is_read(self) -> bool:
        """Whether everything was taken, and its reader waits for more."""
        return self._reader is not None and not self._early and not self._live

    def abandon(self) -> None:
        """Its reader is gone: frees what is still queued."""
        self._backlog = None
        self._early.clear()
        self._forget_live()
        self.close()

    def _forget_live(self) -> None:
        self._live.clear()
        self._live_bytes = 0

    def __aiter__(self) -> CacheWatcher:
        return self

    async def __anext__(self) -> WatchEvent:
        while True:
            if self._early:
                return self._early.popleft()
            if self._backlog is not None:
                self._advance()
                if self._backlog is not None and not self._early:
                    await yield_to_loop()  # nothing matched so far: let others run before looking on
            elif self._live:
                event = self._live.popleft()
                self._live_bytes -= event.size
                return event
            elif self.closed:
                self._end()
            else:
                assert self._reader is None, "a watcher has one reader"
                self._reader = asyncio.get_running_loop().create_future()
                try:
                    await self._reader
                finally:
                    self._reader = None

    def _end(self) -> NoReturn:
        """Keeps nothing of the error, whose traceback will hold all that waited for it."""
        error, self._error = self._error, None
        try:
            raise error or StopAsyncIteration
        finally:
            del error

    def _advance(self) -> None:
        """Turns the next piece of the backlog into events."""
        if self._backlog is None or self._early:
            return
        try:
            piece = list(islice(self._backlog, _CHUNK))
        except Exception:
            self.abandon()  # what comes after the object that can not be read would follow a gap
            raise
        self._early.extend(event for event in piece if event is not None)
        if len(piece) < _CHUNK:
            self._backlog = None

    def _wake(self, reader: asyncio.Future[None]) -> None:
        self._reader = None  # so that the events which follow before it runs cost nothing
        if not reader.done():
            reader.set_result(None)

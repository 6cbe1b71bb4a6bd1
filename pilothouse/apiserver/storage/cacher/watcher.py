"""A watch: a queue between the cache and one client.

Events are in revision order, once, without gaps: first the backlog (initial state or missed changes), then live events.
The backlog holds references, converted to events as fast as the client reads. Live events are bounded in number and
bytes; a full watcher ends after its queued events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import NamedTuple, NoReturn, TypeAlias

from pilothouse.apiserver.storage.cacher.events import CacheChange, ChangeEvents, EventType, Predicate, WatchEvent
from pilothouse.apiserver.storage.cacher.selection import CacheKeyRange, LabelOrField
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_to_loop

LIVE_BYTES = 16 * 1024 * 1024  # of queued objects; a single object may exceed it
_PUSH_SECONDS, _PUSHES_PER_LOOK = 0.005, 16
_CHUNK = 250  # backlog entries per step; bounds both a send and the time between yields


@dataclass(frozen=True, slots=True)
class WatchStart:
    """The start of a watch: `objects` as ADDED, then `end` if set, then `changes` under the prefix, then live events
    after `revision`."""

    revision: Revision
    objects: Sequence[StoredObject] = ()
    end: WatchEvent | None = None
    changes: Sequence[CacheChange] = ()

    def events(self, keys: CacheKeyRange, predicate: Predicate | None) -> Iterator[WatchEvent | None]:
        """Yield the events, and None for each invisible entry, so that a reader can bound its work."""
        for obj in self.objects:
            yield WatchEvent(EventType.ADDED, obj, obj.revision) if predicate is None or predicate(obj) else None
        if self.end is not None:
            yield self.end
        for change in self.changes:
            yield ChangeEvents(change).through(predicate) if change.key in keys else None


class Pushes:
    """Pushes the events of all watchers of a cache in the next turn of the event loop, and in further turns if that
    takes long."""

    def __init__(self) -> None:
        self._watchers: deque[CacheWatcher] = deque()

    def add(self, watcher: CacheWatcher) -> None:
        self._watchers.append(watcher)
        if len(self._watchers) == 1:
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        watchers, end = self._watchers, monotonic() + _PUSH_SECONDS
        while watchers:
            watchers.popleft().push_live()
            if len(watchers) % _PUSHES_PER_LOOK == 0 and watchers and monotonic() > end:
                asyncio.get_running_loop().call_soon(self._run)
                return


class WatchScope(NamedTuple):
    """The scope of a watch: a prefix or key, with an optional required value."""

    prefix: str
    on: LabelOrField | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of a watch."""

    prefix: str
    scope: WatchScope
    predicate: Predicate | None = None
    bookmarks: bool = False
    deadline: float | None = None
    expires: bool = False
    """Whether the watch ends when history is dropped. Not required for correctness; lets clients notice."""


Push: TypeAlias = Callable[[Sequence[WatchEvent]], bool]
"""Sends events at once. Returns False, and sends nothing, if the reader must send them."""


class CacheWatcher:
    """Read by one task: `async for event in watcher`, and `drain()` for further ready events.

    While the task waits, live events need not wake it: with `push` set, they are pushed, those of one turn of the event
    loop together.
    """

    _backlog: Iterator[WatchEvent | None] | None  # unconverted backlog; precedes live events
    _early: deque[WatchEvent]  # converted, unread
    _live: deque[WatchEvent]  # dispatched, unread
    _live_bytes: int  # size of the unread live objects
    is_held = False  # whether a test holds its events back

    def __init__(
        self,
        options: WatchOptions,
        start: WatchStart,
        *,
        limit: int,
        forget: Callable[[CacheWatcher], None],
        pushes: Pushes,
    ) -> None:
        self.options = options
        self.closed = False
        self.push: Push | None = None
        self._predicate = options.predicate
        self._start = start.revision
        self._limit = limit
        self._forget = forget
        self._pushes = pushes
        self._backlog = start.events(CacheKeyRange.of(options.prefix), options.predicate)
        self._early = deque()
        self._live = deque()
        self._live_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        self._error: Exception | None = None

    def offer(self, views: ChangeEvents) -> bool:
        """Queue the watcher's view of a live change. Returns False if full, and closed thereby."""
        try:
            event = views.plain if self._predicate is None else views.through(self._predicate)
        except Exception as error:  # an undecodable object ends the watches that must examine it
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
            if self.push is None:
                self._wake(self._reader)
            elif len(self._live) == 1:
                self._pushes.add(self)
        return True

    def push_live(self) -> None:
        """Push the live events if the reader waits; wake the reader if they cannot be pushed."""
        if self._reader is None or not self._live:
            return
        if self.push is not None and self.push(self._live):
            self._live.clear()
            self._live_bytes = 0
        else:
            self._wake(self._reader)

    def put_bookmark(self, event: WatchEvent) -> None:
        """Queue a bookmark if there is room; bookmarks are optional."""
        if len(self._live) < self._limit and self._live_bytes + event.size <= LIVE_BYTES:
            self.put(event)

    def drain(self) -> list[WatchEvent]:
        """Return a bounded number of ready events; empty if none are ready or more work is needed."""
        self._advance()
        events = list(self._early)
        self._early.clear()
        if self._backlog is None:
            events.extend(self._live)
            self._forget_live()
        return events

    def close(self, error: Exception | None = None) -> None:
        """Accept no more events. Queued events remain readable; then iteration ends or raises the error."""
        if not self.closed:
            self.closed = True
            self._error = error
            self._forget(self)
        if self._reader is not None:
            self._wake(self._reader)

    @property
    def is_read(self) -> bool:
        """Whether the reader has taken all events and waits."""
        return self._reader is not None and not self._early and not self._live

    @property
    def has_unread(self) -> bool:
        """Whether events are queued."""
        return bool(self._early or self._live)

    def has_closed(self) -> bool:
        return self.closed

    def abandon(self) -> None:
        """Free the queue after the reader has gone."""
        self._backlog = self.push = None
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
                    await yield_to_loop()  # no match so far: yield before continuing
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
        """Raise the error without keeping a reference: its traceback holds the frames of the readers."""
        error, self._error = self._error, None
        try:
            raise error or StopAsyncIteration
        finally:
            del error

    def _advance(self) -> None:
        """Convert the next part of the backlog."""
        if self._backlog is None or self._early:
            return
        try:
            piece = list(islice(self._backlog, _CHUNK))
        except Exception:
            self.abandon()  # events behind the undecodable object would follow a gap
            raise
        self._early.extend(event for event in piece if event is not None)
        if len(piece) < _CHUNK:
            self._backlog = None

    def _wake(self, reader: asyncio.Future[None]) -> None:
        self._reader = None  # further events before the reader runs need no wake-up
        if not reader.done():
            reader.set_result(None)


class DelegatingWatcher(CacheWatcher):
    """Base of watchers that observe or change the events of another watcher. Their events are read, never pushed."""

    def __init__(self, watcher: CacheWatcher) -> None:
        # Only the type of the base class is used: every method that a reader calls is overridden.
        self._watcher = watcher

    @property
    def is_held(self) -> bool:
        return self._watcher.is_held

    @is_held.setter
    def is_held(self, held: bool) -> None:
        self._watcher.is_held = held

    @property
    def has_unread(self) -> bool:
        return self._watcher.has_unread

    async def __anext__(self) -> WatchEvent:
        return await self._watcher.__anext__()

    def drain(self) -> list[WatchEvent]:
        return self._watcher.drain()

    def has_closed(self) -> bool:
        return self._watcher.has_closed()

    def close(self, error: Exception | None = None) -> None:
        self._watcher.close(error)

    def abandon(self) -> None:
        self._watcher.abandon()

"""All changes of the store over one connection: a single stream serves every watch.

    etcd ──▶ ServerWatch ──▶ EtcdFeed ──▶ the watches that a change concerns
                                 └──────▶ EventWindow, for watches that join a little late

After a broken connection, the feed resumes behind the last delivered event, unnoticed by the watches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.etcd.client import EtcdClient
from pilothouse.apiserver.storage.etcd.failures import delays
from pilothouse.apiserver.storage.etcd.stream import ProgressRequests, ServerWatch
from pilothouse.apiserver.storage.interface import Batch, Event, Revision
from pilothouse.apiserver.storage.watch_feed import WatchFeed
from pilothouse.apiserver.storage.watching import EventWindow, StoreWatcher, weight
from pilothouse.machinery.failed_attempts import log_failed_attempt

_AT_A_TIME = 2


class RevisionReader:
    """The store's current revision, read once for concurrent callers.

    An answer is shared only by callers that asked before its read began: it may miss a write that returned later.

        a asks → read 1 begins      b asks → read 2 begins      c and d ask → they share read 3, when 1 or 2 has ended
    """

    _next: asyncio.Task[Revision] | None  # not started yet

    def __init__(self, read: Callable[[], Awaitable[Revision]]) -> None:
        self._read = read
        self._next = None
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def current(self) -> Revision:
        if self._next is None:
            self._next = asyncio.create_task(self._read_in_turn())
        # A cancelled caller must not cancel the shared read.
        return await asyncio.shield(self._next)

    async def _read_in_turn(self) -> Revision:
        async with self._turns:
            self._next = None
            return await self._read()


log = logging.getLogger(__name__)

# Maximum events of one replay, plus at most one etcd response.
_REPLAY_EVENTS = 4096
_REPLAY_BYTES = 16 * 1024 * 1024


class EtcdFeed(WatchFeed):
    """Starts with the first watch. A permanent failure ends the watches; the next watch restarts the feed."""

    def __init__(self, client: EtcdClient, revisions: RevisionReader, *, own: str) -> None:
        super().__init__()
        self.own = own
        self._client = client
        self._revisions = revisions
        self._progress = ProgressRequests(lambda: bool(self._expecting))
        self._lost = False  # logged once per loss
        self._task: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        return self.reached >= self._client.seen

    def ensure_running(self) -> None:
        self._client.ensure_open()
        if self._task is None:
            self._begin(self._client.seen)
            self._task = asyncio.create_task(self._run(), name="etcd watch")

    async def replay(self, prefix: str, after: Revision) -> Batch:
        window = self._window
        for delay in delays():
            try:
                batch = await _replay(ServerWatch(self._client, own=self.own, after=after), window)
                break
            except Unavailable as error:
                self._client.ensure_open()
                log.debug("%s: reading history again: %s", prefix, error)
            await asyncio.sleep(delay)
        return Batch(batch.revision, tuple(event for event in batch.events if event.key.startswith(prefix)))

    async def current_revision(self) -> Revision:
        return await self._revisions.current()

    async def expect(self, revision: Revision, watcher: StoreWatcher) -> None:
        await super().expect(revision, watcher)
        self._progress.ask()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.end(Unavailable("the store is closed"))

    async def _run(self) -> None:
        try:
            await self._follow_forever()
        except Exception as error:
            log_failed_attempt(log, error, "the watches end")
            self._fail(error if isinstance(error, StorageError) else Unavailable(f"the watch failed: {error}"))

    async def _follow_forever(self) -> None:
        waits = delays()
        while True:
            before = self.reached
            try:
                # The revisions of a restored etcd restart: a watch would wait for future revisions.
                current = await self._revisions.current()
                if current < self.reached:
                    self._client.seen = current
                    raise StorageError(f"etcd went back from revision {self.reached} to {current}")
                stream = ServerWatch(self._client, own=self.own, after=self.reached)
                try:
                    await stream.open()
                    self._lost = False
                    with self._progress.put_to(stream):
                        while True:
                            self._publish(await stream.read())
                finally:
                    stream.close()
            except Unavailable as error:
                level = logging.DEBUG if self._lost else logging.WARNING
                log.log(level, "lost the watch, resuming behind revision %d: %s", self.reached, error)
                self._lost = True
            if self.reached > before:
                waits = delays()
            await asyncio.sleep(next(waits))

    def _fail(self, error: StorageError) -> None:
        self._task = None
        self.end(error)


async def _replay(watch: ServerWatch, window: EventWindow) -> Batch:
    """Return the oldest events of the watch, up to the window if not too many. Extends the window back to the start of
    the watch if possible. Raises Compacted or Unavailable."""
    start, events, size = watch.reached, list[Event](), 0
    try:
        await watch.open()
        # A watch without further events reports so only on a progress request.
        with ProgressRequests(wanted=lambda: True).put_to(watch):
            while watch.reached < window.start and len(events) < _REPLAY_EVENTS and size < _REPLAY_BYTES:
                batch = await watch.read()
                events += batch.events
                size += sum(map(weight, batch.events))
    finally:
        watch.close()
    if watch.reached >= window.start:
        window.reach_back(start, events)
    return Batch(watch.reached, tuple(events))

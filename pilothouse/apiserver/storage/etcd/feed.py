"""All changes of the store, in order, over one connection: every watch is served from this one stream.

    etcd ──▶ ServerWatch ──▶ Feed ──▶ the watches that a change concerns
                               └────▶ Window, for watches that join a little late

Because the feed sees every change, how far it has come is how far each watch has come, whatever keys it watches. When
the connection breaks, the feed resumes behind the last event that it has passed on; the watches do not notice.
"""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.etcd.backoff import delays
from pilothouse.apiserver.storage.etcd.client import Client
from pilothouse.apiserver.storage.etcd.replay import replay
from pilothouse.apiserver.storage.etcd.revision import RevisionReader
from pilothouse.apiserver.storage.etcd.stream import ServerWatch
from pilothouse.apiserver.storage.interface import Batch, Event, Revision
from pilothouse.apiserver.storage.watching.watchers import StoreWatcher, StoreWatchers
from pilothouse.apiserver.storage.watching.window import Window

log = logging.getLogger(__name__)

_WINDOW_BYTES = 32 * 1024 * 1024


class Feed:
    """Starts with the first watch. When it fails for good its watches end, and the next watch starts it anew."""

    reached: Revision  # every event up to here was passed on
    _expecting: dict[StoreWatcher, Revision]  # who wants to know when the feed has come to a revision

    def __init__(self, client: Client, revisions: RevisionReader, *, own: str) -> None:
        self.reached = 0
        self.own = own
        self._client = client
        self._revisions = revisions
        self._watchers = StoreWatchers()
        self._window = Window(0, max_bytes=_WINDOW_BYTES)
        self._expecting = {}
        self._stream: ServerWatch | None = None
        self._lost = False  # said once, however often the connection can not be built again
        self._task: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        """Whether the feed has come to the newest revision that this process knows of."""
        return self.reached >= self._client.seen

    def join(self, watcher: StoreWatcher, after: Revision) -> list[Event] | None:
        """The events behind `after`; what follows is pushed. None when memory does not reach back so far.
        Raises Unavailable."""
        self._client.ensure_open()
        if self._task is None:
            self._start()
        if not self._window.covers(after):
            return None
        self._watchers.add(watcher)
        return [event for event in self._window.after(after) if event.key.startswith(watcher.prefix)]

    def leave(self, watcher: StoreWatcher) -> None:
        self._watchers.discard(watcher)
        self._expecting.pop(watcher, None)

    async def replay(self, prefix: str, after: Revision) -> Batch:
        """Some of the events behind `after`, the oldest, from etcd. Raises Compacted."""
        window = self._window
        for delay in delays():
            try:
                batch = await replay(ServerWatch(self._client, own=self.own, after=after), window)
                break
            except Unavailable as error:
                self._client.ensure_open()
                log.debug("%s: reading history again: %s", prefix, error)
            await asyncio.sleep(delay)
        return Batch(batch.revision, tuple(event for event in batch.events if event.key.startswith(prefix)))

    async def current_revision(self) -> Revision:
        return await self._revisions.current()

    async def expect(self, revision: Revision, watcher: StoreWatcher) -> None:
        """Tells the watcher when the feed has come to the revision."""
        if self.reached >= revision:
            watcher.tell_progress()
            return
        self._expecting[watcher] = max(revision, self._expecting.get(watcher, 0))
        if self._stream is not None and self._stream.answers_progress:
            await self._stream.request_progress()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._watchers.end_all(Unavailable("the store is closed"))

    def _start(self) -> None:
        self.reached = self._client.seen
        self._window = Window(self.reached, max_bytes=_WINDOW_BYTES)
        self._task = asyncio.create_task(self._run(), name="etcd watch")

    async def _run(self) -> None:
        try:
            await self._follow_forever()
        except StorageError as error:
            log.warning("the watches end: %s", error)
            self._fail(error)
        except Exception as error:
            log.exception("unexpected failure, the watches end")
            self._fail(Unavailable(f"the watch failed: {error}"))

    async def _follow_forever(self) -> None:
        waits = delays()
        while True:
            before = self.reached
            try:
                await self._follow()
            except Unavailable as error:
                level = logging.DEBUG if self._lost else logging.WARNING
                log.log(level, "lost the watch, resuming behind revision %d: %s", self.reached, error)
                self._lost = True
            if self.reached > before:
                waits = delays()
            await asyncio.sleep(next(waits))

    async def _follow(self) -> None:
        """Never returns; raises what ends the stream."""
        await self._check_that_history_goes_on()
        stream = ServerWatch(self._client, own=self.own, after=self.reached)
        try:
            await stream.open()
            self._stream, self._lost = stream, False
            if self._expecting and stream.answers_progress:
                await stream.request_progress()
            while True:
                self._publish(await stream.read())
        finally:
            self._stream = None
            stream.close()

    async def _check_that_history_goes_on(self) -> None:
        """An etcd restored from a backup counts its revisions anew, and a watch would wait for ones to come."""
        current = await self._revisions.current()
        if current < self.reached:
            self._client.seen = current
            raise StorageError(f"etcd went back from revision {self.reached} to {current}")

    def _publish(self, batch: Batch) -> None:
        self._window.extend(batch.events)
        self._watchers.publish(batch.events)
        self.reached = batch.revision
        for watcher, revision in list(self._expecting.items()):
            if revision <= self.reached:
                del self._expecting[watcher]
                watcher.tell_progress()

    def _fail(self, error: StorageError) -> None:
        self._task = None
        self._watchers.end_all(error)
        self._expecting.clear()

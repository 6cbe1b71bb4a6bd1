"""The embedded store: SQLite on disk, the current state in memory, one writer thread.

Reads of the current state stay on the event loop. Writes become durable in batches (pipeline), then visible, then
watched. Older revisions come from recent events in memory, or from the file on a reader thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pilothouse.apiserver.storage.delegating import ClosingStore
from pilothouse.apiserver.storage.errors import (
    Compacted,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StorageError,
    Unavailable,
)
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Page, Revision, check_request_size
from pilothouse.apiserver.storage.metrics import forget_size, report_size
from pilothouse.apiserver.storage.sqlite.directory import Opened, open_directory
from pilothouse.apiserver.storage.sqlite.history import Deadline, SqliteKeyRange
from pilothouse.apiserver.storage.sqlite.maintenance import Expiry, SqliteCompactor, StoreHealth, SystemClock, WallClock
from pilothouse.apiserver.storage.sqlite.mvcc_history import MvccHistory
from pilothouse.apiserver.storage.sqlite.pipeline import Pipeline, Write, probe
from pilothouse.apiserver.storage.sqlite.state import StoreState
from pilothouse.apiserver.storage.sqlite.thread import ConnectionThread
from pilothouse.apiserver.storage.watching import QueuedWatch, StoreWatchers

# kube-apiserver's --etcd-compaction-interval in seconds.
COMPACTION_INTERVAL = 300.0

_CLUSTER = "embedded"

Announce: TypeAlias = Callable[[Revision, Revision], None]


class SqliteWatch(QueuedWatch):
    """A watch of the embedded store; older events are read from the file."""

    def __init__(self, history: MvccHistory, watchers: StoreWatchers, *, prefix: str, after: Revision) -> None:
        self._history = history
        self._watchers = watchers
        super().__init__(prefix=prefix, after=after)

    async def request_progress(self) -> None:
        self.tell_progress()

    @property
    def _newest(self) -> Revision:
        return self._history.revision

    def _join(self) -> list[Event] | None:
        self._history.ensure_open()
        if self._reached < self._history.compacted:
            raise Compacted(self._reached, self._history.compacted)
        events = self._history.recent(self.prefix, self._reached)
        if events is not None:
            self._watchers.add(self)
        return events

    def _leave(self) -> None:
        self._watchers.discard(self)

    async def _replay(self) -> Batch:
        return await self._history.replay(self.prefix, self._reached)


class SqliteStore(ClosingStore):
    """The storage contract on one data directory, for one process and one event loop.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from pilothouse.apiserver import SqliteStore
    >>> store = await SqliteStore.open(Path(mkdtemp()))
    >>> created = await store.create("/registry/flunders/a", b"{}")
    >>> (await store.update(created.key, b"[]", expected=created.modified)).modified > created.modified
    True
    >>> await store.close()
    """

    def __init__(self, opened: Opened, *, clock: WallClock, compaction_interval: float, announce: Announce) -> None:
        snapshot = opened.snapshot
        self._directory = opened.directory
        self._clock = clock
        self._writer = ConnectionThread(
            opened.writer, name="store-writer", precondition=self._directory.ensure_in_place
        )
        self._reader = ConnectionThread(opened.reader, name="store-reader")
        self._state = StoreState(snapshot)
        self._compactor = SqliteCompactor(self._writer, self._state, compacted=snapshot.compacted, swept=snapshot.swept)
        self._announce = self._compactor.changed = lambda: announce(self._state.revision, self._compactor.compacted)
        self._history = MvccHistory(self._state, self._reader, self._compactor)
        self._watchers = StoreWatchers()
        self._health = StoreHealth(clock, lambda: self._writer.call(probe))
        self._pipeline = Pipeline(self._writer, self._state, publish=self._publish, health=self._health)
        self._expiry = Expiry(snapshot.deadlines, clock)
        self._background = [asyncio.create_task(self._expiry.run(clock, self._expire))]
        if compaction_interval:
            self._background.append(asyncio.create_task(self._compactor.run(clock, compaction_interval)))
        report_size(_CLUSTER, self._directory.size)
        self._announce()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: WallClock | None = None,
        compaction_interval: float = COMPACTION_INTERVAL,
        fsync: bool = True,
        announce: Announce = lambda current, compacted: None,
    ) -> SqliteStore:
        """Open or create the data directory. An interval of 0 disables automatic compaction. `announce` is called with
        the current and the oldest revision, initially and after every change, once durable and before any other
        notification. Without `fsync`, writes survive the process but not the machine.

        Raises DirectoryInUse, UnsupportedFormat or DamagedStore.
        """
        opened = await asyncio.to_thread(open_directory, path, fsync=fsync)
        clock = clock or SystemClock()
        return cls(opened, clock=clock, compaction_interval=compaction_interval, announce=announce)

    async def get(self, key: str) -> Entry | None:
        self._history.ensure_open()
        return self._state.read(key)

    async def create(self, key: str, value: bytes, *, ttl: int = 0) -> Entry:
        key.encode()  # an unencodable key must fail alone, not with its batch
        check_request_size(key, value)
        check = partial(_check_absent, key)
        return await self._pipeline.write(key, value, check=check, ttl=ttl, expires=self._deadline(ttl))

    async def update(self, key: str, value: bytes, *, expected: Revision, ttl: int = 0) -> Entry:
        check_request_size(key, value)
        check = partial(_at_revision, key, expected)
        return await self._pipeline.write(key, value, check=check, ttl=ttl, expires=self._deadline(ttl))

    async def delete(self, key: str, *, expected: Revision) -> Entry:
        return await self._pipeline.write(key, None, check=partial(_at_revision, key, expected))

    async def list(self, prefix: str, *, at: Revision | None = None, after: str = "", limit: int = 0) -> Page:
        self._history.ensure_open()
        keys = SqliteKeyRange.under(prefix, after=after)
        if at is None:
            return self._state.page(keys, limit)
        return await self._history.page(keys, at=at, limit=limit)

    async def count(self, prefix: str) -> int:
        self._history.ensure_open()
        return self._state.count(SqliteKeyRange.under(prefix))

    def watch(self, prefix: str, *, after: Revision) -> SqliteWatch:
        return SqliteWatch(self._history, self._watchers, prefix=prefix, after=after)

    async def current_revision(self) -> Revision:
        self._history.ensure_open()
        return self._state.revision

    async def compact(self, revision: Revision) -> None:
        self._history.ensure_open()
        await self._compactor.compact(revision)

    async def ping(self) -> None:
        self._history.ensure_open()
        await self._health.check()

    async def _shut_down(self) -> None:
        """Finish accepted writes, end the watches, and release the directory."""
        forget_size(_CLUSTER)
        await self._pipeline.close()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._watchers.end_all(Unavailable("the store is closed"))
        await self._reader.close()
        await self._writer.close()
        self._directory.release()

    def _publish(self, batch: Sequence[Write]) -> None:
        events = [write.event for write in batch]
        self._history.publish(events)
        self._announce()
        for write in batch:
            if write.ttl:
                due = self._clock.monotonic() + write.ttl
                self._expiry.add(Deadline(due, write.event.revision, write.event.key))
        self._watchers.publish(events)

    def _deadline(self, ttl: int) -> float | None:
        return self._clock.now() + ttl if ttl else None

    async def _expire(self, key: str, revision: Revision) -> Entry:
        return await self.delete(key, expected=revision)


def _check_absent(key: str, entry: Entry | None) -> StorageError | None:
    return None if entry is None else KeyExists(key)


def _at_revision(key: str, expected: Revision, entry: Entry | None) -> StorageError | None:
    if entry is None:
        return KeyNotFound(key)
    if entry.modified != expected:
        return RevisionConflict(f"{key} is at revision {entry.modified}, not {expected}")
    return None

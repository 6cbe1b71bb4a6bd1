"""Background work of the embedded store: compaction, expiry of keys with a TTL, and health checks of durable writes."""

from __future__ import annotations

import asyncio
import heapq
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol, TypeAlias

from pilothouse.apiserver.storage.errors import FutureRevision, KeyNotFound, RevisionConflict, StorageError, Unavailable
from pilothouse.apiserver.storage.interface import Entry, Revision
from pilothouse.apiserver.storage.sqlite.history import Deadline
from pilothouse.apiserver.storage.sqlite.schema import transaction, write_meta
from pilothouse.apiserver.storage.sqlite.state import StoreState
from pilothouse.apiserver.storage.sqlite.thread import ConnectionThread
from pilothouse.machinery import server_time


class WallClock(Protocol):
    """The wall clock for persistent deadlines, and a monotonic clock otherwise."""

    def now(self) -> float:
        """Return seconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds of a monotonic clock; only differences are meaningful."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The server's clock: the system clock, except in tests."""

    now = staticmethod(server_time.wall)
    monotonic = staticmethod(server_time.monotonic)
    sleep = staticmethod(server_time.sleep)


# Revisions per step.
_STEP = 200

_log = logging.getLogger(__name__)


class SqliteCompactor:
    """Compacts step by step on the writer's thread, between batches.

    First the new oldest revision becomes durable, and older reads are refused. Then unreachable rows are deleted in
    small steps, so that writes wait for one step at most. A crash in between leaves rows for the next sweep.
    """

    def __init__(self, writer: ConnectionThread, state: StoreState, *, compacted: Revision, swept: Revision) -> None:
        self.compacted = compacted
        self.changed: Callable[[], None] = lambda: None
        """Called after a change of `compacted`."""
        self._swept = swept
        self._writer = writer
        self._state = state
        self._one_at_a_time = asyncio.Lock()

    async def compact(self, revision: Revision) -> None:
        """Compact to the revision. Raises FutureRevision or Unavailable."""
        if revision > self._state.revision:
            raise FutureRevision(revision, self._state.revision)
        async with self._one_at_a_time:
            if revision > self.compacted:
                await self._writer.call(partial(write_meta, name="compacted", value=revision))
                self.compacted = revision
                self.changed()
            while self._swept < self.compacted:
                upto = min(self._swept + _STEP, self.compacted)
                await self._writer.call(partial(_delete_replaced, after=self._swept, upto=upto))
                self._swept = upto

    async def run(self, clock: WallClock, interval: float) -> None:
        """Drop history older than one interval, every interval."""
        older = self.compacted
        while True:
            try:
                await self.compact(older)
            except StorageError as error:
                _log.warning("compaction to revision %d failed, to be tried again: %s", older, error)
            older = self._state.revision
            await clock.sleep(interval)


def _delete_replaced(connection: sqlite3.Connection, *, after: Revision, upto: Revision) -> None:
    """Delete the rows replaced in (after, upto], and the deletes among these changes."""
    span = {"after": after, "upto": upto}
    changes = "revision > :after AND revision <= :upto"
    replaced = f"SELECT previous FROM history WHERE {changes} AND previous IS NOT NULL"
    with transaction(connection):
        connection.execute(f"DELETE FROM history WHERE revision IN ({replaced})", span)
        connection.execute(f"DELETE FROM history WHERE {changes} AND value IS NULL", span)
        write_meta(connection, "swept", upto)


# Maximum delay in seconds, as in etcd.
_PERIOD = 0.5

# Keys deleted together.
_AT_ONCE = 1000


Delete: TypeAlias = Callable[[str, Revision], Awaitable[Entry]]


class Expiry:
    """Deadlines of durable entries. The deadline of a replaced or deleted entry is void.

    While the store is open, keys expire by the monotonic clock, as in etcd: setting the wall clock has no effect.
    """

    def __init__(self, stored: Iterable[Deadline], clock: WallClock) -> None:
        """`stored`: the deadlines in the file."""
        ahead = clock.monotonic() - clock.now()
        self._deadlines = [Deadline(each.at + ahead, each.revision, each.key) for each in stored]
        heapq.heapify(self._deadlines)

    def add(self, deadline: Deadline) -> None:
        heapq.heappush(self._deadlines, deadline)

    async def run(self, clock: WallClock, delete: Delete) -> None:
        while True:
            now = clock.monotonic()
            due: list[Deadline] = []
            while self._deadlines and self._deadlines[0].at <= now and len(due) < _AT_ONCE:
                due.append(heapq.heappop(self._deadlines))
            outcomes = await asyncio.gather(*(self._expire(deadline, delete) for deadline in due))
            left = [deadline for deadline, gone in zip(due, outcomes, strict=True) if not gone]
            for deadline in left:
                self.add(deadline)
            if left:
                _log.warning("%d keys have expired but the store cannot delete them now", len(left))
            await clock.sleep(_PERIOD)

    async def _expire(self, deadline: Deadline, delete: Delete) -> bool:
        """Return whether the deadline is settled: the entry is deleted or was replaced."""
        try:
            await delete(deadline.key, deadline.revision)
        except (KeyNotFound, RevisionConflict):
            return True
        except Unavailable:
            return False
        return True


# Seconds between probes, and the maximum duration of a healthy commit.
_PROBE_EVERY = 1.0
_COMMIT_LIMIT = 10.0

Probe: TypeAlias = Callable[[], Awaitable[None]]


class StoreHealth:
    """Unhealthy from a failed commit until the next success, and while a commit hangs."""

    def __init__(self, clock: WallClock, probe: Probe) -> None:
        self._clock = clock
        self._probe = probe
        self._reason: str | None = None
        self._probed = clock.monotonic()
        self._started: float | None = None  # start of the running commit

    def commit_started(self) -> None:
        self._started = self._clock.monotonic()

    def commit_succeeded(self) -> None:
        self._started = None
        self._reason = None

    def commit_failed(self, error: Exception) -> None:
        self._started = None
        self._reason = str(error)
        self._probed = self._clock.monotonic()

    async def check(self) -> None:
        """Raise Unavailable while writes fail."""
        now = self._clock.monotonic()
        if self._started is not None and now - self._started > _COMMIT_LIMIT:
            raise Unavailable(f"a commit has been running for {now - self._started:.0f} s")
        if self._reason is None:
            return
        if now - self._probed < _PROBE_EVERY:
            raise Unavailable(self._reason)
        self._probed = now
        try:
            await self._probe()
        except Unavailable as error:
            self._reason = str(error)
            raise
        self._reason = None

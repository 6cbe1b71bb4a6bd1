"""The write pipeline: check in memory, assign a revision, commit in batches, publish.

A write is checked against the newest accepted state, so writers of one key do not wait for each other's fsync. A write
returns, and becomes visible, once durable. Writes that arrive during a commit form the next batch:

    create a ─┐                          create b, update a, delete c ─┐
              └ commit {a} ── fsync ── publish {a}                     └ commit {b, a, c} ── fsync ── publish …

If a commit fails, its writes fail, and so do the writes accepted behind it, which were checked against a state that
never existed. The next write starts from the durable state.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import chain
from typing import TypeAlias

from prometheus_client import Histogram

from pilothouse.apiserver.storage.errors import StorageError, Unavailable
from pilothouse.apiserver.storage.interface import Entry, Event
from pilothouse.apiserver.storage.sqlite.maintenance import StoreHealth
from pilothouse.apiserver.storage.sqlite.schema import COLUMNS, checksum, transaction
from pilothouse.apiserver.storage.sqlite.state import StoreState
from pilothouse.apiserver.storage.sqlite.thread import ConnectionThread, JobOutcome
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.machinery.dataclass import dataclass

COMMIT_DURATION = Histogram(
    "pilothouse_storage_commit_duration_seconds",
    "Time to make one batch of writes durable in the embedded store.",
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
    registry=REGISTRY,
)
COMMIT_WRITES = Histogram(
    "pilothouse_storage_commit_writes",
    "Number of writes that one commit of the embedded store made durable.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    registry=REGISTRY,
)


# Maximum rows per statement. Each statement releases the interpreter lock and must win it back from a busy event loop,
# so a batch uses few statements.
_ROWS = 32
_COLUMNS = 7

# Size of a probe: enough to need new pages, like a real write.
_PROBE_BYTES = 16 * 1024


@dataclass(slots=True)
class ChangeRow:
    """A row of the history."""

    event: Event
    expires: float | None

    def columns(self) -> tuple[int, str, int, int | None, float | None, bytes | None, int]:
        event, entry = self.event, self.event.entry
        replaced = event.previous.modified if event.previous else None
        created, expires, value = (0, None, None) if entry is None else (entry.created, self.expires, entry.value)
        found = checksum(event.revision, event.key, created, replaced, expires, value)
        return event.revision, event.key, created, replaced, expires, value, found


def commit(connection: sqlite3.Connection, rows: Sequence[ChangeRow]) -> None:
    """Commit the rows. Raises sqlite3.Error if the rows are not durable; the file is checked, whatever SQLite
    reports."""
    started = time.perf_counter()
    try:
        _insert(connection, rows)
    except sqlite3.Error:
        if not _has_revision(connection, rows[-1].event.revision):
            raise
    COMMIT_DURATION.observe(time.perf_counter() - started)
    COMMIT_WRITES.observe(len(rows))


def probe(connection: sqlite3.Connection) -> None:
    """Write and delete a durable test row."""
    connection.execute("INSERT INTO probe VALUES (zeroblob(?))", (_PROBE_BYTES,))
    connection.execute("DELETE FROM probe")


def _insert(connection: sqlite3.Connection, rows: Sequence[ChangeRow]) -> None:
    if len(rows) <= _ROWS:
        _insert_rows(connection, rows)
        return
    with transaction(connection):
        for start in range(0, len(rows), _ROWS):
            _insert_rows(connection, rows[start : start + _ROWS])


def _insert_rows(connection: sqlite3.Connection, rows: Sequence[ChangeRow]) -> None:
    columns: Iterable[object] = chain.from_iterable(row.columns() for row in rows)
    connection.execute(_statement(len(rows)), tuple(columns))


@cache
def _statement(rows: int) -> str:
    row = f"({', '.join('?' * _COLUMNS)})"
    return f"INSERT INTO history ({COLUMNS}, checksum) VALUES {', '.join([row] * rows)}"


def _has_revision(connection: sqlite3.Connection, revision: int) -> bool:
    try:
        return connection.execute("SELECT 1 FROM history WHERE revision = ?", (revision,)).fetchone() is not None
    except sqlite3.Error:
        return False


_MOST_TURNS = 16
"""Event loop turns during which a batch may grow while the disk is idle."""

# Returns the error of a write on the given entry; None = allowed.
Check: TypeAlias = Callable[[Entry | None], StorageError | None]


@dataclass(slots=True)
class Write(ChangeRow):
    """An accepted write: the change, its result, and its waiter."""

    ttl: int
    answer: Entry
    done: asyncio.Future[Entry]


Publish: TypeAlias = Callable[[Sequence[Write]], None]


class Pipeline:
    """Accepts writes, and commits them in batches, in revision order.

    `publish` is called with each durable batch, and must apply it to the state.
    """

    _pending: dict[str, Write]  # key → newest accepted write that is not durable
    _queue: list[Write]  # accepted, committed next
    _running: list[Write]  # being committed; with _queue, all unsettled writes
    _settling: list[asyncio.Future[None]]  # woken when the next batch is settled

    def __init__(self, writer: ConnectionThread, state: StoreState, *, publish: Publish, health: StoreHealth) -> None:
        self._writer = writer
        self._state = state
        self._publish = publish
        self._health = health
        self._loop = asyncio.get_running_loop()
        self._revision = state.revision  # of the newest accepted write
        self._pending = {}
        self._queue = []
        self._running = []
        self._settling = []
        self._closed = False

    async def write(
        self, key: str, value: bytes | None, *, check: Check, ttl: int = 0, expires: float | None = None
    ) -> Entry:
        """Set the value, or delete the key for None. Raises the error of `check`. `expires`: persistent deadline of a
        TTL.

        A refusal must be based on durable state: the write behind the refusal may still fail, and a caller that is told
        that a key exists must be able to read it. Otherwise the write waits and is checked again.
        """
        while check(self._newest(key)) is not None:
            refusal = check(self._state.get(key))
            if refusal is not None:
                raise refusal
            await self._settled()
        return await self._accept(key, value, ttl, expires)

    async def close(self) -> None:
        """Refuse new writes, and wait until the accepted writes are settled."""
        self._closed = True
        while self._queue or self._running:
            await self._settled()

    def _newest(self, key: str) -> Entry | None:
        pending = self._pending.get(key)
        return pending.event.entry if pending else self._state.get(key)

    def _accept(self, key: str, value: bytes | None, ttl: int, expires: float | None) -> asyncio.Future[Entry]:
        if self._closed:
            raise Unavailable("the store is closed")
        revision = self._revision + 1
        previous = self._newest(key)
        created = previous.created if previous else revision
        event = Event(revision, key, None if value is None else Entry(key, value, created, revision), previous)
        write = Write(event, expires, ttl, event.entry or _deleted(event), self._loop.create_future())
        self._revision = event.revision
        self._pending[key] = write
        if not self._queue and not self._running:
            # Deferred, so that writes of other ready tasks join the batch.
            self._loop.call_soon(self._commit_grown, 1, _MOST_TURNS)
        self._queue.append(write)
        return write.done

    def _commit_grown(self, size: int, turns: int) -> None:
        """Wait while the batch grows: a small commit costs nearly as much as a large one."""
        if len(self._queue) > size and turns:
            self._loop.call_soon(self._commit_grown, len(self._queue), turns - 1)
        else:
            self._commit_next()

    def _commit_next(self) -> None:
        if self._queue and not self._running:
            self._running, self._queue = self._queue, []
            self._health.commit_started()
            self._writer.send(partial(commit, rows=self._running), self._committed)

    def _committed(self, outcome: JobOutcome[None]) -> None:
        batch, self._running = self._running, []
        if outcome.error is None:
            self._health.commit_succeeded()
            self._commit_next()  # first, so that the disk works while this batch is published
            self._publish(batch)
            for write in batch:
                if self._pending[write.event.key] is write:
                    del self._pending[write.event.key]
                if not write.done.done():
                    write.done.set_result(write.answer)
        else:
            error = outcome.error
            behind, self._queue = self._queue, []
            self._pending.clear()
            self._revision = self._state.revision
            self._health.commit_failed(error)
            uncertain = error.uncertain if isinstance(error, Unavailable) else True
            _fail(batch, Unavailable(str(error), uncertain=uncertain))
            _fail(behind, Unavailable(str(error)))
        settling, self._settling = self._settling, []
        for waiter in settling:
            if not waiter.done():
                waiter.set_result(None)

    async def _settled(self) -> None:
        """Wait until the next batch is settled. Call only while a write is unsettled."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._settling.append(waiter)
        await waiter


def _deleted(event: Event) -> Entry:
    """Return the result of a delete: the last value at the revision of the delete."""
    assert event.previous is not None
    return Entry(event.key, event.previous.value, event.previous.created, event.revision)


def _fail(writes: list[Write], error: Unavailable) -> None:
    for write in writes:
        if not write.done.done():
            write.done.set_exception(Unavailable(str(error), uncertain=error.uncertain))

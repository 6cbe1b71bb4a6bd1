"""Commit of a batch: one transaction, one fsync, all or nothing, measured."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

from prometheus_client import Histogram

from pilothouse.apiserver.storage.interface import Event
from pilothouse.apiserver.storage.sqlite.checksums import COLUMNS, checksum
from pilothouse.apiserver.storage.sqlite.schema import transaction
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

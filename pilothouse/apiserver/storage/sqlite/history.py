"""Reading the file: the current state when the store opens, and revisions that memory has forgotten.

Each read is one snapshot. Compaction first commits how far it goes and then deletes rows, so a snapshot in which
the asked revision is not compacted has every row that it needs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, TypeAlias

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Revision
from pilothouse.apiserver.storage.sqlite.checksums import COLUMNS, checksum, damaged, is_intact
from pilothouse.apiserver.storage.sqlite.keys import SqliteKeyRange
from pilothouse.apiserver.storage.sqlite.schema import has_checksums, read_meta, transaction
from pilothouse.machinery.dataclass import dataclass

# Like etcd's, an empty store is at revision 1: clients take resource version 0 to mean "any".
FIRST_REVISION = 1

# What keys were before some changes: None for a key that was not there.
Undo: TypeAlias = dict[str, Entry | None]

_IN_RANGE = "h.revision > :after AND h.revision <= :upto AND h.key >= :start AND (:end IS NULL OR h.key < :end)"
_PREVIOUS = "LEFT JOIN history p ON p.revision = h.previous"
_OF_PREVIOUS = "p.revision, p.key, p.created, p.previous, p.expires, p.value, p.checksum"
_EVENTS = f"""
SELECT {_OF_PREVIOUS}, h.revision, h.key, h.created, h.previous, h.expires, h.value, h.checksum
FROM history h {_PREVIOUS} WHERE {_IN_RANGE} ORDER BY h.revision LIMIT :limit
"""
_FIRST_CHANGES = f"""
SELECT h.key, {_OF_PREVIOUS}
FROM (SELECT h.key, min(h.revision), h.previous FROM history h WHERE {_IN_RANGE} GROUP BY h.key) h {_PREVIOUS}
"""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The key is to be deleted at `at` if `revision` is still its last. Sorts by time, which is the wall clock's in the
    file and the monotonic clock's in memory."""

    at: float
    revision: Revision
    key: str

    def __lt__(self, other: Deadline) -> bool:
        return self.at < other.at


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """All that the file holds of the current state. Deadlines of entries that are no more may be among the others."""

    revision: Revision
    compacted: Revision
    swept: Revision
    entries: dict[str, Entry]
    deadlines: list[Deadline]
    damaged: dict[str, Revision]
    """Keys of entries whose value is not as it was written, which have an empty one instead."""


@dataclass(frozen=True, slots=True)
class Span:
    """Changes between two revisions."""

    keys: SqliteKeyRange
    after: Revision
    upto: Revision


def load(connection: sqlite3.Connection) -> StoreSnapshot:
    """Replays the whole history, in its own order on disk. Raises sqlite3.DatabaseError for a damaged row, but not for
    one of which only the value is damaged."""
    revision = compacted = read_meta(connection, "compacted")
    entries: dict[str, Entry] = {}
    deadlines: list[Deadline] = []
    broken: dict[str, Revision] = {}
    columns = connection.execute(f"SELECT {COLUMNS}, checksum FROM history ORDER BY revision")
    for revision, key, created, previous, expires, value, found in columns:
        if broken:
            broken.pop(key, None)
        expected = checksum(revision, key, created, previous, expires, value)
        if found != expected and not is_intact(found, expected):
            broken[key], value = revision, b""
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = Entry(key, value, created, revision)
        if expires is not None:
            deadlines.append(Deadline(expires, revision, key))
    # Compaction may have deleted the newest row, if that was a delete.
    newest = max(FIRST_REVISION, compacted, revision)
    return StoreSnapshot(newest, compacted, read_meta(connection, "swept"), entries, deadlines, broken)


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """The columns of a checksum, and the damage that it shows, if any."""

    columns: tuple[Any, ...]
    damage: str | None


def rows(connection: sqlite3.Connection, condition: str = "TRUE") -> Iterator[CheckedRow]:
    """Yield all rows that meet the condition, in the order of revisions. A file of format 1 shows no damage."""
    column = "checksum" if has_checksums(connection) else "NULL"
    for *columns, found in connection.execute(f"SELECT {COLUMNS}, {column} FROM history WHERE {condition} ORDER BY 1"):
        damage = None
        try:
            if column != "NULL" and not is_intact(found, checksum(*columns)):
                damage = str(damaged(columns[1], columns[0]))
        except sqlite3.DatabaseError as error:
            damage = f"{columns[1]}, revision {columns[0]}: {error}"
        yield CheckedRow(tuple(columns), damage)


def newest_revision(connection: sqlite3.Connection) -> Revision:
    """The revision of the last write that is in the file."""
    (newest,) = connection.execute("SELECT max(revision) FROM history").fetchone()
    return max(FIRST_REVISION, read_meta(connection, "compacted"), newest or 0)


def read_events(connection: sqlite3.Connection, span: Span, limit: int) -> Batch:
    """At most `limit` events of the span, the oldest. Raises Compacted, Undecodable."""
    with transaction(connection, "DEFERRED"):
        _refuse_compacted(connection, span.after)
        rows = connection.execute(_EVENTS, {**_parameters(span), "limit": limit}).fetchall()
    events = tuple(_event(*row) for row in rows)
    return Batch(events[-1].revision if len(events) == limit else span.upto, events)


def read_undo(connection: sqlite3.Connection, span: Span) -> Undo:
    """Return the entry before the span of each key that the span changes. Raises Compacted, Undecodable."""
    with transaction(connection, "DEFERRED"):
        _refuse_compacted(connection, span.after)
        rows = connection.execute(_FIRST_CHANGES, _parameters(span)).fetchall()
    return {key: _entry(*previous) for key, *previous in rows}


def _refuse_compacted(connection: sqlite3.Connection, after: Revision) -> None:
    compacted = read_meta(connection, "compacted")
    if after < compacted:
        raise Compacted(after, compacted)


def _parameters(span: Span) -> dict[str, str | int | None]:
    return {"after": span.after, "upto": span.upto, "start": span.keys.start, "end": span.keys.end}


def _event(*columns: Any) -> Event:
    """Columns of the row that was replaced, if any, then those of the row."""
    previous, row = columns[: len(columns) // 2], columns[len(columns) // 2 :]
    revision, key = row[:2]
    return Event(revision, key, _entry(*row), _entry(*previous))


def _entry(revision: int | None, *columns: Any) -> Entry | None:
    """None for a delete, and where there is no row. Raises Undecodable, sqlite3.DatabaseError."""
    if revision is None:
        return None
    key, created, _, _, value, found = columns
    if not is_intact(found, checksum(revision, *columns[:-1])):
        raise damaged(key, revision)
    return None if value is None else Entry(key, value, created, revision)

"""Reads from the file: the state at open, and revisions that are no longer in memory.

Each read is one snapshot. Compaction commits its limit before it deletes rows, so a snapshot in which a revision is not
compacted has all its rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, TypeAlias

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Revision
from pilothouse.apiserver.storage.sqlite.schema import (
    COLUMNS,
    checksum,
    damaged,
    has_checksums,
    is_intact,
    read_meta,
    transaction,
)
from pilothouse.machinery.dataclass import dataclass

_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class SqliteKeyRange:
    """Keys with `start <= key < end`; end None = unbounded."""

    start: str
    end: str | None

    @staticmethod
    def under(prefix: str, *, after: str = "") -> SqliteKeyRange:
        """Return the range of keys with the prefix that are greater than `after`."""
        return SqliteKeyRange(max(prefix, after + "\0") if after else prefix, prefix_end(prefix))

    def __contains__(self, key: str) -> bool:
        return self.start <= key and (self.end is None or key < self.end)


def prefix_end(prefix: str) -> str | None:
    """Return the smallest string greater than every key with the prefix; None if there is none."""
    stem = prefix.rstrip(_LAST)
    return stem[:-1] + _successor(stem[-1]) if stem else None


def _successor(char: str) -> str:
    # Skip surrogates, which UTF-8 cannot encode.
    return "\ue000" if char == "\ud7ff" else chr(ord(char) + 1)


# As in etcd, an empty store is at revision 1: clients treat resource version 0 as "any".
FIRST_REVISION = 1

# Key → earlier entry; None = absent.
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
    """Delete the key at `at` if `revision` is still its last. Sorted by time: wall clock in the file, monotonic clock
    in memory."""

    at: float
    revision: Revision
    key: str

    def __lt__(self, other: Deadline) -> bool:
        return self.at < other.at


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """The current state in the file. Deadlines may include those of replaced entries."""

    revision: Revision
    compacted: Revision
    swept: Revision
    entries: dict[str, Entry]
    deadlines: list[Deadline]
    damaged: dict[str, Revision]
    """Keys with damaged values, which are loaded as empty."""


@dataclass(frozen=True, slots=True)
class Span:
    """Changes between two revisions."""

    keys: SqliteKeyRange
    after: Revision
    upto: Revision


def load(connection: sqlite3.Connection) -> StoreSnapshot:
    """Replay the whole history in disk order. Raises sqlite3.DatabaseError for damaged rows, except those with only a
    damaged value."""
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
    # Compaction may have deleted the newest row, if it was a delete.
    newest = max(FIRST_REVISION, compacted, revision)
    return StoreSnapshot(newest, compacted, read_meta(connection, "swept"), entries, deadlines, broken)


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """The columns of a checksum, and the detected damage."""

    columns: tuple[Any, ...]
    damage: str | None


def rows(connection: sqlite3.Connection, condition: str = "TRUE") -> Iterator[CheckedRow]:
    """Yield the matching rows in revision order. Files of format 1 show no damage."""
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
    """Return the revision of the last write in the file."""
    (newest,) = connection.execute("SELECT max(revision) FROM history").fetchone()
    return max(FIRST_REVISION, read_meta(connection, "compacted"), newest or 0)


def read_events(connection: sqlite3.Connection, span: Span, limit: int) -> Batch:
    """Return the oldest `limit` events of the span. Raises Compacted or Undecodable."""
    with transaction(connection, "DEFERRED"):
        _refuse_compacted(connection, span.after)
        rows = connection.execute(_EVENTS, {**_parameters(span), "limit": limit}).fetchall()
    events = tuple(_event(*row) for row in rows)
    return Batch(events[-1].revision if len(events) == limit else span.upto, events)


def read_undo(connection: sqlite3.Connection, span: Span) -> Undo:
    """Return the entries before the span of all keys that it changes. Raises Compacted or Undecodable."""
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
    """Build an event from the columns of the replaced row, if any, and of the row."""
    previous, row = columns[: len(columns) // 2], columns[len(columns) // 2 :]
    revision, key = row[:2]
    return Event(revision, key, _entry(*row), _entry(*previous))


def _entry(revision: int | None, *columns: Any) -> Entry | None:
    """Return the entry; None for a delete or a missing row. Raises Undecodable or sqlite3.DatabaseError."""
    if revision is None:
        return None
    key, created, _, _, value, found = columns
    if not is_intact(found, checksum(revision, *columns[:-1])):
        raise damaged(key, revision)
    return None if value is None else Entry(key, value, created, revision)

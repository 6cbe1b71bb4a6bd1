"""Reading the file: the current state when the store opens, and revisions that memory has forgotten.

Each read is one snapshot. Compaction first commits how far it goes and then deletes rows, so a snapshot in which
the asked revision is not compacted has every row that it needs.
"""

from __future__ import annotations

import sqlite3
from typing import Any, TypeAlias

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.interface import Batch, Entry, Event, Revision
from pilothouse.apiserver.storage.sqlite.keys import SqliteKeyRange
from pilothouse.apiserver.storage.sqlite.schema import read_meta, transaction
from pilothouse.machinery.dataclass import dataclass

# Like etcd's, an empty store is at revision 1: clients take resource version 0 to mean "any".
FIRST_REVISION = 1

# What keys were before some changes: None for a key that was not there.
Undo: TypeAlias = dict[str, Entry | None]

_IN_RANGE = "h.revision > :after AND h.revision <= :upto AND h.key >= :start AND (:end IS NULL OR h.key < :end)"
_PREVIOUS = "LEFT JOIN history p ON p.revision = h.previous"
_EVENTS = f"""
SELECT h.revision, h.key, h.created, h.value, p.revision, p.created, p.value
FROM history h {_PREVIOUS} WHERE {_IN_RANGE} ORDER BY h.revision LIMIT :limit
"""
_FIRST_CHANGES = f"""
SELECT h.key, p.revision, p.created, p.value
FROM (SELECT h.key, min(h.revision), h.previous FROM history h WHERE {_IN_RANGE} GROUP BY h.key) h {_PREVIOUS}
"""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The key is to be deleted at `at` if `revision` is still its last. Sorts by time."""

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


@dataclass(frozen=True, slots=True)
class Span:
    """Changes between two revisions."""

    keys: SqliteKeyRange
    after: Revision
    upto: Revision


def load(connection: sqlite3.Connection) -> StoreSnapshot:
    """Replays the whole history, in its own order on disk."""
    revision = compacted = read_meta(connection, "compacted")
    entries: dict[str, Entry] = {}
    deadlines: list[Deadline] = []
    rows = connection.execute("SELECT revision, key, created, expires, value FROM history ORDER BY revision")
    for revision, key, created, expires, value in rows:
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = Entry(key, value, created, revision)
        if expires is not None:
            deadlines.append(Deadline(expires, revision, key))
    # Compaction may have deleted the newest row, if that was a delete.
    newest = max(FIRST_REVISION, compacted, revision)
    return StoreSnapshot(newest, compacted, read_meta(connection, "swept"), entries, deadlines)


def newest_revision(connection: sqlite3.Connection) -> Revision:
    """The revision of the last write that is in the file."""
    (newest,) = connection.execute("SELECT max(revision) FROM history").fetchone()
    return max(FIRST_REVISION, read_meta(connection, "compacted"), newest or 0)


def read_events(connection: sqlite3.Connection, span: Span, limit: int) -> Batch:
    """At most `limit` events of the span, the oldest. Raises Compacted."""
    with transaction(connection, "DEFERRED"):
        _refuse_compacted(connection, span.after)
        rows = connection.execute(_EVENTS, {**_parameters(span), "limit": limit}).fetchall()
    events = tuple(_event(*row) for row in rows)
    return Batch(events[-1].revision if len(events) == limit else span.upto, events)


def read_undo(connection: sqlite3.Connection, span: Span) -> Undo:
    """Return the entry before the span of each key that the span changes. Raises Compacted."""
    with transaction(connection, "DEFERRED"):
        _refuse_compacted(connection, span.after)
        rows = connection.execute(_FIRST_CHANGES, _parameters(span)).fetchall()
    return {key: _entry(key, *previous) for key, *previous in rows}


def _refuse_compacted(connection: sqlite3.Connection, after: Revision) -> None:
    compacted = read_meta(connection, "compacted")
    if after < compacted:
        raise Compacted(after, compacted)


def _parameters(span: Span) -> dict[str, str | int | None]:
    return {"after": span.after, "upto": span.upto, "start": span.keys.start, "end": span.keys.end}


def _event(revision: int, key: str, created: int, value: bytes | None, *previous: Any) -> Event:
    entry = None if value is None else Entry(key, value, created, revision)
    return Event(revision, key, entry, _entry(key, *previous))


def _entry(key: str, revision: int | None, created: int, value: bytes) -> Entry | None:
    return None if revision is None else Entry(key, value, created, revision)

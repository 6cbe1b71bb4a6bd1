"""The file layout: tables, row checksums and connections, and the errors of opening a data directory.

`history` has one row per uncompacted revision, and is the only copy of the data. A row names the revision that it
replaces, so history can be read backwards, replayed and compacted without an index on keys, which would cost a second
page per write. A delete is a row without a value.

`meta` holds `format`; `compacted`, the oldest readable revision; and `swept`, up to which compacted rows are deleted
(swept <= compacted).

SQLite has no checksums for its pages, so without row checksums a flipped bit on disk would be served. One integer holds
two CRC-32 values: the upper half covers all columns but the value, the lower half the value. A row with a damaged value
is still identified by its key, and only that key is refused. Damage to other columns could concern any key, so the
whole store is refused. Format 1 had no checksums. Such a file is upgraded when opened for writing.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from zlib import crc32

from pilothouse.apiserver.storage.errors import StorageError, Undecodable
from pilothouse.apiserver.storage.interface import Revision

UNREADABLE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)
"""Errors of reading a damaged file; SQLite's messages may quote invalid text."""


class DirectoryInUse(StorageError):
    """Another process uses the data directory."""

    def __init__(self, directory: Path, holder: str) -> None:
        super().__init__(f"data directory {directory} is in use by process {holder}")
        self.directory = directory
        self.holder = holder


class UnsupportedFormat(StorageError):
    """The data was written by a newer version."""

    def __init__(self, file: Path, *, found: int, supported: int) -> None:
        super().__init__(
            f"{file} has format {found}, this version reads formats up to {supported}: use a newer version"
        )
        self.found = found
        self.supported = supported


class DamagedStore(StorageError):
    """The file is damaged. The message has the command that restores a backup."""

    def __init__(self, file: Path, reason: str) -> None:
        folder = file.parent
        here, aside, above = (shlex.quote(str(path)) for path in (folder, f"{folder}.damaged", folder.parent))
        super().__init__(
            f"{file} cannot be read: {reason}; to restore a backup, run: "
            f"mv {here} {aside} && pilothouse restore BACKUP_FILE --data-dir {above}"
        )


COLUMNS: Final = "revision, key, created, previous, expires, value"
"""Columns of a checksum, in the argument order of `checksum`."""

_LOWER = 0xFFFFFFFF


def checksum(
    revision: int, key: str, created: int, previous: int | None, expires: float | None, value: bytes | None
) -> int:
    """Return a 63-bit checksum: 31 bits for all columns but the value, 32 bits for the value. A value that is not a
    blob, a sign of damage, gets an impossible checksum."""
    if value is not None and not isinstance(value, bytes):
        return -1
    upper = crc32(f"{revision} {created} {previous} {expires} {value is None} {key}".encode())
    return (upper & 0x7FFFFFFF) << 32 | crc32(value or b"")


def is_intact(found: int | None, expected: int) -> bool:
    """Return whether the value is intact. Raises sqlite3.DatabaseError if the rest of the row is damaged."""
    if found == expected:
        return True
    if not isinstance(found, int) or found >> 32 != expected >> 32:
        raise sqlite3.DatabaseError("a row is damaged: its checksum does not match")
    return False


def damaged(key: str, revision: Revision) -> Undecodable:
    return Undecodable(f"the stored value of {key} is damaged: the checksum of revision {revision} does not match")


def add_checksums(connection: sqlite3.Connection) -> None:
    """Compute the checksums of all rows."""
    connection.create_function("checksum_of_row", COLUMNS.count(",") + 1, checksum, deterministic=True)
    connection.execute(f"UPDATE history SET checksum = checksum_of_row({COLUMNS})")


FORMAT = 2

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE history (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    created INTEGER NOT NULL,
    previous INTEGER,
    expires REAL,
    value BLOB,
    checksum INTEGER
);
CREATE TABLE probe (value BLOB);
"""


def connect(file: Path, *, fsync: bool = True) -> sqlite3.Connection:
    """Return a connection with durable commits, usable by one thread at a time.

    Without `fsync`, commits survive the process but not the machine. With `fsync`, macOS also flushes the drive's cache
    (F_FULLFSYNC) at each commit and checkpoint, as fsync does elsewhere.
    """
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'OFF'}")
    for pragma in ("fullfsync", "checkpoint_fullfsync"):
        connection.execute(f"PRAGMA {pragma} = {'ON' if fsync else 'OFF'}")
    return connection


def open_to_read(file: Path) -> sqlite3.Connection:
    """Return a read-only connection that blocks no writer. Raises DamagedStore or UnsupportedFormat."""
    if not file.exists():
        raise DamagedStore(file, "there is no such file")
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        _refuse_newer(connection, file)
    except UNREADABLE as error:
        connection.close()
        raise DamagedStore(file, str(error)) from error
    except UnsupportedFormat:
        connection.close()
        raise
    return connection


def refuse_newer(file: Path) -> None:
    """Raise UnsupportedFormat for a file of a newer version, leaving it untouched."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        try:
            if _has_tables(connection):
                _refuse_newer(connection, file)
        except sqlite3.OperationalError as error:
            # A power cut during creation: SQLite must roll back first. `prepare` checks again.
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise


def prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Create the tables in an empty file, and upgrade older formats. Raises UnsupportedFormat for a newer version."""
    if not _has_tables(connection):
        rows = f"INSERT INTO meta VALUES ('format', {FORMAT}), ('compacted', 0), ('swept', 0);"
        connection.executescript(f"BEGIN; {_TABLES} {rows} COMMIT;")
    _refuse_newer(connection, file)
    if not has_checksums(connection):
        with transaction(connection):
            connection.execute("ALTER TABLE history ADD COLUMN checksum INTEGER")
            add_checksums(connection)
            write_meta(connection, "format", FORMAT)


def check_structure(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError for inconsistent pages: a scan would silently skip rows."""
    (line,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if line != "ok":
        raise sqlite3.DatabaseError(line)


def has_checksums(connection: sqlite3.Connection) -> bool:
    return read_meta(connection, "format") > 1


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is not None


def _refuse_newer(connection: sqlite3.Connection, file: Path) -> None:
    found = read_meta(connection, "format")
    if found > FORMAT:
        raise UnsupportedFormat(file, found=found, supported=FORMAT)


def read_meta(connection: sqlite3.Connection, name: str) -> int:
    """Return a value of `meta`. Raises sqlite3.DatabaseError for files that are not an intact store."""
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    if row is None or not isinstance(row[0], int):
        raise sqlite3.DatabaseError(f"the table meta does not say {name}")
    return row[0]


def write_meta(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Run the block as a transaction. A read-only DEFERRED transaction sees one state of the file."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise

"""What must hold of the embedded store's file, beside what is in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pilothouse.apiserver.storage.sqlite.directory import DataDirectory
from pilothouse.apiserver.storage.sqlite.errors import UNREADABLE
from pilothouse.apiserver.storage.sqlite.history import newest_revision, rows
from pilothouse.apiserver.storage.sqlite.schema import open_to_read, read_meta
from pilothouse.cli.diagnosis.findings import Finding, failed

_RESTORE = (
    "back up the readable keys (`pilothouse backup --skip-damaged`) and restore them into an empty data directory"
)
_BROKEN_CHAIN = """
SELECT h.revision, h.key FROM history h LEFT JOIN history p ON p.revision = h.previous
WHERE h.previous IS NOT NULL AND h.revision > :swept
AND (p.revision IS NULL OR p.key != h.key OR p.revision >= h.revision)
"""


def file_findings(directory: Path) -> Iterator[Finding]:
    """Raises StorageError for a file that can not be opened."""
    file = directory / DataDirectory.FILE
    with closing(open_to_read(file)) as connection:
        try:
            yield from _findings(connection, file)
        except UNREADABLE as error:
            yield failed("file", f"{file}: {error}", _RESTORE)


def _findings(connection: sqlite3.Connection, file: Path) -> Iterator[Finding]:
    for (line,) in connection.execute("PRAGMA integrity_check(10)"):
        if line != "ok":
            yield failed("file", f"{file}: {line}", _RESTORE)
    swept, compacted = read_meta(connection, "swept"), read_meta(connection, "compacted")
    if not swept <= compacted <= newest_revision(connection):
        text = f"swept to {swept}, compacted to {compacted}, at revision {newest_revision(connection)}"
        yield failed("revision", f"{file}: {text}", _RESTORE)
    for row in rows(connection):
        if row.damage is not None:
            yield failed("checksum", row.damage, _RESTORE)
    for revision, key in connection.execute(_BROKEN_CHAIN, {"swept": swept}):
        yield failed("revision", f"{key}: the value before revision {revision} is missing", _RESTORE)

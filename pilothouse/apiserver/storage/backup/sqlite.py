"""The embedded store as source and target of a backup, without a server."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Final, Self

from pilothouse.apiserver.storage.backup.model import BackupError, NotEmpty, SavedEntry, Source
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Revision
from pilothouse.apiserver.storage.sqlite.directory import DataDirectory
from pilothouse.apiserver.storage.sqlite.history import newest_revision, rows
from pilothouse.apiserver.storage.sqlite.schema import (
    COLUMNS,
    UNREADABLE,
    DamagedStore,
    checksum,
    connect,
    open_to_read,
    prepare,
    transaction,
    write_meta,
)
from pilothouse.machinery.event_loop import yield_to_loop
from pilothouse.machinery.platform import sync_directory

_ROWS_BETWEEN_TURNS: Final = 200
_REPLACED = "SELECT previous FROM history WHERE previous IS NOT NULL"
_ROW = f"INSERT INTO history ({COLUMNS}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)"


class SqliteSource:
    """The committed state of a store directory at `open`, despite concurrent writers.

    A read transaction pins the state; one row at a time is in memory.
    """

    def __init__(self, connection: sqlite3.Connection, file: Path, prefix: str, *, skip_damaged: bool) -> None:
        self._connection = connection
        self.prefix = prefix
        self._file = file
        self._skip_damaged = skip_damaged
        self.skipped: list[str] = []
        """Skipped keys with damaged values."""
        self.revision: Revision = newest_revision(connection)

    @classmethod
    def open(cls, directory: Path, prefix: str = DEFAULT_ROOT, *, skip_damaged: bool = False) -> Self:
        """Open a directory; keys with other prefixes are included. Raises DamagedStore or UnsupportedFormat."""
        connection = open_to_read(directory / DataDirectory.FILE)
        try:
            connection.execute("BEGIN DEFERRED")
            return cls(connection, directory / DataDirectory.FILE, prefix, skip_damaged=skip_damaged)
        except BaseException:
            connection.close()
            raise

    async def entries(self) -> AsyncIterator[SavedEntry]:
        """Yield the entries. Raises BackupError for a damaged value unless damaged values are skipped, and
        DamagedStore."""
        now = time.time()
        try:
            replaced = {revision for (revision,) in self._connection.execute(_REPLACED)}
            for number, row in enumerate(rows(self._connection, "value IS NOT NULL")):
                revision, key, created, _, expires, value = row.columns
                if revision in replaced or (expires is not None and expires <= now):
                    continue
                if row.damage is None:
                    yield SavedEntry(key, value, created, revision, 0 if expires is None else math.ceil(expires - now))
                else:
                    if not self._skip_damaged:
                        raise BackupError(
                            f"{row.damage}: --skip-damaged leaves such keys out; `pilothouse check` lists them"
                        )
                    self.skipped.append(key)
                if number % _ROWS_BETWEEN_TURNS == 0:
                    await yield_to_loop()
        except UNREADABLE as error:
            raise DamagedStore(self._file, str(error)) from error

    async def newest(self) -> Revision:
        with closing(open_to_read(self._file)) as connection:
            return newest_revision(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class SqliteTarget:
    """A missing or unwritten store directory. The store is built aside and renamed."""

    def __init__(self, directory: Path) -> None:
        """Raises NotEmpty, DirectoryInUse, DamagedStore or UnsupportedFormat."""
        self._directory = directory
        if (file := directory / DataDirectory.FILE).exists() and file.stat().st_size:
            refuse_entries(directory)

    async def fill(self, source: Source, *, at_least: Revision) -> Revision:
        aside = self._directory.with_name(f".{self._directory.name}.restoring")
        shutil.rmtree(aside, ignore_errors=True)
        building = DataDirectory(aside)
        try:
            with closing(connect(building.database)) as connection:
                prepare(connection, building.database)
                revision = max(at_least, source.revision)
                with transaction(connection):
                    async for entry in source.entries():
                        revision += 1
                        expires = time.time() + entry.ttl if entry.ttl else None
                        columns = (revision, entry.key, revision, None, expires, entry.value)
                        connection.execute(_ROW, (*columns, checksum(*columns)))
                    write_meta(connection, "compacted", revision)
                    write_meta(connection, "swept", revision)
            building.sync()
            building.release()  # Windows cannot rename a directory with open files
            if self._directory.exists():
                shutil.rmtree(self._directory)  # empty, and the data directory is locked
            os.rename(aside, self._directory)
            sync_directory(self._directory.parent)
        finally:
            building.release()
            shutil.rmtree(aside, ignore_errors=True)
        return revision


def refuse_entries(directory: Path) -> None:
    """Raise NotEmpty for a store that has or had entries."""
    with closing(open_to_read(directory / DataDirectory.FILE)) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM history").fetchone()
    if rows:
        raise NotEmpty(str(directory), rows)

"""The data directory: private to its owner, and locked by one process.

Opening locks the directory, checks the format, and loads the state.

The lock belongs to the operating system and ends with the process. The file content, the holder's process id, serves
the error message only.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.sqlite.history import StoreSnapshot, load
from pilothouse.apiserver.storage.sqlite.schema import (
    UNREADABLE,
    DamagedStore,
    DirectoryInUse,
    check_structure,
    connect,
    prepare,
    refuse_newer,
)
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.files import HeldFile, LockHeld, make_directory
from pilothouse.machinery.platform import sync_directory

_KEYS_TO_NAME = 10

_log = logging.getLogger(__name__)


class DataDirectory:
    """A locked directory. `release` is idempotent."""

    FILE = "store.db"

    def __init__(self, path: Path) -> None:
        make_directory(path)
        self.path = path
        self.database = path / self.FILE
        try:
            self._lock = HeldFile(path / "lock")
        except LockHeld as held:
            raise DirectoryInUse(path, held.holder) from None
        # The database holds secrets: create it with its final mode, without a window before a chmod.
        os.close(os.open(self.database, os.O_RDWR | os.O_CREAT, 0o600))
        self._opened: list[tuple[Path, int]] = []  # files open in SQLite, with their inodes

    def size(self) -> int:
        """Return the size on disk, including the write-ahead log."""
        total = self.database.stat().st_size
        with suppress(FileNotFoundError):
            total += self._wal.stat().st_size
        return total

    @property
    def _wal(self) -> Path:
        return self.path / f"{self.FILE}-wal"

    def note_open_files(self) -> None:
        """Record the files that SQLite has open."""
        self._opened = [(file, file.stat().st_ino) for file in (self.database, self._wal)]

    def ensure_in_place(self) -> None:
        """Raise Unavailable if a file was deleted or replaced: SQLite would write to an unlinked file."""
        for file, inode in self._opened:
            try:
                found = os.stat(file).st_ino
            except OSError:
                found = -1
            if found != inode:
                raise Unavailable(f"{file} was deleted or replaced while it is in use: restart the server")

    def sync(self) -> None:
        """Make the names of new files durable."""
        sync_directory(self.path)

    def release(self) -> None:
        self._lock.release()


@dataclass(frozen=True, slots=True)
class Opened:
    """A locked directory, two connections, and the loaded state."""

    directory: DataDirectory
    writer: sqlite3.Connection
    reader: sqlite3.Connection
    snapshot: StoreSnapshot


def open_directory(path: Path, *, fsync: bool = True) -> Opened:
    """Open a directory. Raises DirectoryInUse, UnsupportedFormat or DamagedStore; then nothing stays open or locked."""
    with ExitStack() as undo:
        directory = DataDirectory(path)
        undo.callback(directory.release)
        try:
            refuse_newer(directory.database)
            writer = undo.enter_context(closing(connect(directory.database, fsync=fsync)))
            prepare(writer, directory.database)
            check_structure(writer)
            directory.sync()
            reader = undo.enter_context(closing(connect(directory.database)))
            reader.execute("PRAGMA query_only = ON")
            opened = Opened(directory, writer, reader, load(writer))
            snapshot = opened.snapshot
            if count := len(snapshot.damaged):
                some = ", ".join(sorted(snapshot.damaged)[:_KEYS_TO_NAME])
                _log.error(
                    "%d stored values are damaged and are not served; `pilothouse check` lists them: %s", count, some
                )
            directory.note_open_files()
        except UNREADABLE as error:
            raise DamagedStore(directory.database, str(error)) from error
        undo.pop_all()
        return opened


def copy_directory(source: Path, target: Path) -> None:
    """Copy the committed contents to a new directory, despite concurrent writers.

    Raises DirectoryInUse for the target, DamagedStore for the source.
    """
    directory = DataDirectory(target)
    try:
        with closing(sqlite3.connect(source / directory.database.name)) as original, _new(directory) as copy:
            original.backup(copy)
    except UNREADABLE as error:
        raise DamagedStore(source / DataDirectory.FILE, str(error)) from error
    finally:
        directory.release()


def _new(directory: DataDirectory) -> closing[sqlite3.Connection]:
    """Return a connection without fsync: an unfinished copy is worthless anyway."""
    connection = sqlite3.connect(directory.database, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    return closing(connection)

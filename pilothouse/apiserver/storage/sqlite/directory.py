"""The data directory: private to its owner, and to one process at a time.

Opening one locks it, checks the format of its file and loads the current state.

The lock is the operating system's, so it goes with its process however that ends. The file's content,
the holder's process id, is only for the message that refuses a second process.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from pilothouse.apiserver.storage.errors import Unavailable
from pilothouse.apiserver.storage.sqlite.errors import UNREADABLE, DamagedStore, DirectoryInUse
from pilothouse.apiserver.storage.sqlite.history import StoreSnapshot, load
from pilothouse.apiserver.storage.sqlite.schema import check_structure, connect, prepare, refuse_newer
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.platform import sync_directory
from pilothouse.machinery.platform.held_file import HeldFile, LockHeld
from pilothouse.machinery.whole_files import make_directory

_KEYS_TO_NAME = 10

_log = logging.getLogger(__name__)


class DataDirectory:
    """A locked directory. `release` gives it up; it may be called again."""

    FILE = "store.db"

    def __init__(self, path: Path) -> None:
        make_directory(path)
        self.path = path
        self.database = path / self.FILE
        try:
            self._lock = HeldFile(path / "lock")
        except LockHeld as held:
            raise DirectoryInUse(path, held.holder) from None
        # The database holds secrets: it must never be readable by others, not even between creation and a chmod.
        os.close(os.open(self.database, os.O_RDWR | os.O_CREAT, 0o600))
        self._opened: list[tuple[Path, int]] = []  # files that SQLite holds open, with their inodes

    def size(self) -> int:
        """Bytes on disk, the write-ahead log included."""
        total = self.database.stat().st_size
        with suppress(FileNotFoundError):
            total += self._wal.stat().st_size
        return total

    @property
    def _wal(self) -> Path:
        return self.path / f"{self.FILE}-wal"

    def note_open_files(self) -> None:
        """Remember the files that SQLite has open from now on."""
        self._opened = [(file, file.stat().st_ino) for file in (self.database, self._wal)]

    def ensure_in_place(self) -> None:
        """Raises Unavailable when a file was deleted or replaced: SQLite would go on writing to one without a name."""
        for file, inode in self._opened:
            try:
                found = os.stat(file).st_ino
            except OSError:
                found = -1
            if found != inode:
                raise Unavailable(f"{file} was deleted or replaced while it is in use: restart the server")

    def sync(self) -> None:
        """Makes the names of newly created files durable."""
        sync_directory(self.path)

    def release(self) -> None:
        self._lock.release()


@dataclass(frozen=True, slots=True)
class Opened:
    """A directory that is ours, two connections to its file, and what is in it."""

    directory: DataDirectory
    writer: sqlite3.Connection
    reader: sqlite3.Connection
    snapshot: StoreSnapshot


def open_directory(path: Path, *, fsync: bool = True) -> Opened:
    """Raises DirectoryInUse, UnsupportedFormat, DamagedStore; then nothing stays open or locked."""
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
    """Make a directory that has all that is committed in another one now, whoever has that open and writes to it.

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
    """A connection that does not wait for the disk: a copy that is not finished is of no use to anybody."""
    connection = sqlite3.connect(directory.database, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    return closing(connection)

"""Opening a data directory: lock it, check the file's format, load the current state."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

from pilothouse.apiserver.storage.sqlite.directory import DataDirectory
from pilothouse.apiserver.storage.sqlite.errors import DamagedStore
from pilothouse.apiserver.storage.sqlite.history import Snapshot, load
from pilothouse.apiserver.storage.sqlite.schema import connect, prepare
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Opened:
    """A directory that is ours, two connections to its file, and what is in it."""

    directory: DataDirectory
    writer: sqlite3.Connection
    reader: sqlite3.Connection
    snapshot: Snapshot


def open_directory(path: Path) -> Opened:
    """Raises DirectoryInUse, UnsupportedFormat, DamagedStore; then nothing stays open or locked."""
    with ExitStack() as undo:
        directory = DataDirectory(path)
        undo.callback(directory.release)
        try:
            writer = undo.enter_context(closing(connect(directory.database)))
            prepare(writer, directory.database)
            directory.sync()
            reader = undo.enter_context(closing(connect(directory.database)))
            reader.execute("PRAGMA query_only = ON")
            opened = Opened(directory, writer, reader, load(writer))
        except sqlite3.DatabaseError as error:
            raise DamagedStore(directory.database, str(error)) from error
        undo.pop_all()
        return opened

"""Errors of opening a data directory."""

from __future__ import annotations

import shlex
import sqlite3
from pathlib import Path
from typing import Final

from pilothouse.apiserver.storage.errors import StorageError

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

"""The data directory: locked by one process, private to its owner.

Write access to the directory, and read access to its keys, grant full control of the cluster. Modes of files of the
current user are tightened with a warning. Files of other users are an error, because their owners can change the modes
back.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from pilothouse.apiserver.storage.backup.model import BackupError, SavedFile
from pilothouse.machinery.files import HeldFile, LockHeld, make_directory, write_atomically
from pilothouse.machinery.platform import effective_user

log = logging.getLogger(__name__)

_WRITTEN_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE = (".key", ".kubeconfig", ".db", ".db-wal", ".db-shm", "join-token")


class DataDirError(Exception):
    """Base class. The message names the directory."""


class DataDirInUse(DataDirError):
    """Another process holds the lock of the directory."""


class DataDirUnsafe(DataDirError):
    """Another user can modify the directory."""


class DataDir:
    """A locked data directory. The lock lasts until `close` or the end of the process."""

    def __init__(self, path: Path, lock: HeldFile) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> DataDir:
        """Create the directory if missing, make its files private, and take the lock. Raises DataDirError."""
        with _usable(path):
            make_directory(path)
            make_private(path)
            try:
                return cls(path, HeldFile(path / "lock"))
            except LockHeld as held:
                raise DataDirInUse(f"--data-dir {path} is in use by another pilothouse (pid {held.holder})") from None

    def close(self) -> None:
        self._lock.release()


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """Map an OSError of the block to a DataDirError that names the flag."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataDirError(
            f"the data directory {path} is not usable: {reason}; choose a writable directory with --data-dir"
        ) from error


def make_private(directory: Path) -> None:
    """Remove group and world write permissions in the directory, and read permissions of keys and of the store.

    Raises DataDirUnsafe for files owned by neither the current user nor root, and OSError. No-op on Windows, where
    files inherit the access control list of the user's profile.
    """
    user = effective_user()
    if user is None:
        return
    trusted = {user, 0}
    for path, status in _everything(directory):
        if status.st_uid not in trusted:
            raise DataDirUnsafe(
                f"--data-dir {directory}: {path} belongs to user {status.st_uid}, who could change it: "
                "use a directory of your own"
            )
        wrong = status.st_mode & (
            _OPEN_TO_OTHERS if (stat.S_ISREG(status.st_mode) and path.name.endswith(_PRIVATE)) else _WRITTEN_BY_OTHERS
        )
        if wrong and not stat.S_ISLNK(status.st_mode):  # modes of symbolic links have no effect
            _tighten(directory, path, status, wrong)


def _everything(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the directory and every path below, without following symbolic links."""
    yield directory, directory.stat()
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(folder, name)
            with suppress(FileNotFoundError):  # another process may be deleting files
                yield path, path.lstat()


def _tighten(directory: Path, path: Path, status: os.stat_result, wrong: int) -> None:
    before, after = stat.S_IMODE(status.st_mode), stat.S_IMODE(status.st_mode) & ~wrong
    try:
        path.chmod(after)
    except PermissionError:
        raise DataDirUnsafe(
            f"--data-dir {directory}: {path} has mode {before:04o}, so that others can change or read it, and is not "
            "ours to change: use a directory of your own"
        ) from None
    log.warning("%s had mode %04o and was open to others: it has mode %04o now", path, before, after)


STORE = "store"
"""Folder of the embedded store."""


def copy_data_dir(source: Path, target: Path) -> None:
    """Copy a data directory: certificates and keys as they are, the store at one revision. A server may keep running on
    `source`. Raises OSError, StorageError."""
    from pilothouse.apiserver.storage.sqlite.directory import copy_directory

    shutil.copytree(source, target, ignore=lambda folder, names: {STORE, "lock"} if Path(folder) == source else set())
    copy_directory(source / STORE, target / STORE)


_NOT_KEPT = (STORE, "lock")


def files_of(data_dir: Path) -> Iterator[SavedFile]:
    """Yield every file outside the store, sorted by path. Raises OSError."""
    for path in sorted(data_dir.rglob("*")):
        inside = path.relative_to(data_dir)
        if inside.parts[0] in _NOT_KEPT or inside.name.startswith(".") or not path.is_file():
            continue
        yield SavedFile(inside.as_posix(), path.stat().st_mode & 0o777, path.read_bytes())


def refuse_other_files(data_dir: Path, files: Iterable[SavedFile]) -> None:
    """Raise BackupError if a file exists with other content."""
    for file in files:
        path = _place(data_dir, file)
        if path.exists() and path.read_bytes() != file.content:
            raise BackupError(
                f"{path} is there already and is another one than in the backup: "
                "use another --data-dir, or --without-files to keep those that are there"
            )


def put_files(data_dir: Path, files: Iterable[SavedFile]) -> int:
    """Write the files with their modes, and return their number. Raises BackupError, OSError."""
    written = 0
    for file in files:
        written += 1
        path = _place(data_dir, file)
        for folder in reversed(path.relative_to(data_dir).parents[:-1]):
            make_directory(data_dir / folder)
        write_atomically(path, file.content, mode=file.mode)
    return written


def _place(data_dir: Path, file: SavedFile) -> Path:
    inside = PurePosixPath(file.path)
    if inside.is_absolute() or ".." in inside.parts or os.path.isabs(file.path):
        raise BackupError(f"the backup has a file {file.path}, which would be outside of the data directory")
    return data_dir / inside

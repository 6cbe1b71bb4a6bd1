"""The data directory: used by one process at a time, and private to its owner.

Whoever can write there can become anybody, and whoever can read a key can, too. What is ours is tightened, and that is
logged. What another user owns can not be: that user could loosen it again.
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
    """The message names the directory."""


class DataDirInUse(DataDirError):
    """Another process has the directory."""


class DataDirUnsafe(DataDirError):
    """Somebody else can change what is in it."""


class DataDir:
    """Held from `open` until `close`, or until the process ends in whatever way."""

    def __init__(self, path: Path, lock: HeldFile) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> DataDir:
        """Makes the directory if it is not there, and private if it is. Raises DataDirError."""
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
    """Raise DataDirError, which names the flag, for an OSError of the block."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataDirError(
            f"the data directory {path} is not usable: {reason}; choose a writable directory with --data-dir"
        ) from error


def make_private(directory: Path) -> None:
    """Takes from others what they may do in the directory and with its files: to write any, to read keys and the store.
    Raises DataDirUnsafe for what is neither ours nor root's, OSError. No-op where files have no modes: on Windows they
    inherit the access control list of the user's profile."""
    user = effective_user()
    if user is None:
        return
    trusted = {user, 0}
    for path, found in _everything(directory):
        if found.st_uid not in trusted:
            raise DataDirUnsafe(
                f"--data-dir {directory}: {path} belongs to user {found.st_uid}, who could change it: "
                "use a directory of your own"
            )
        wrong = found.st_mode & (
            _OPEN_TO_OTHERS if (stat.S_ISREG(found.st_mode) and path.name.endswith(_PRIVATE)) else _WRITTEN_BY_OTHERS
        )
        if wrong and not stat.S_ISLNK(found.st_mode):  # the mode of a link means nothing
            _tighten(directory, path, found, wrong)


def _everything(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The directory and all below it; links are not followed."""
    yield directory, directory.stat()
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(folder, name)
            with suppress(FileNotFoundError):  # a process that has the directory may be at work
                yield path, path.lstat()


def _tighten(directory: Path, path: Path, found: os.stat_result, wrong: int) -> None:
    before, after = stat.S_IMODE(found.st_mode), stat.S_IMODE(found.st_mode) & ~wrong
    try:
        path.chmod(after)
    except PermissionError:
        raise DataDirUnsafe(
            f"--data-dir {directory}: {path} has mode {before:04o}, so that others can change or read it, and is not "
            "ours to change: use a directory of your own"
        ) from None
    log.warning("%s had mode %04o and was open to others: it has mode %04o now", path, before, after)


STORE = "store"
"""The folder of the embedded store."""


def copy_data_dir(source: Path, target: Path) -> None:
    """Make a data directory that has what another one has: certificates and keys as they are, the store as it is at one
    moment. A server may have the other one open, and go on. Raises OSError, StorageError."""
    from pilothouse.apiserver.storage.sqlite.directory import copy_directory

    shutil.copytree(source, target, ignore=lambda folder, names: {STORE, "lock"} if Path(folder) == source else set())
    copy_directory(source / STORE, target / STORE)


_NOT_KEPT = (STORE, "lock")


def files_of(data_dir: Path) -> Iterator[SavedFile]:
    """Every file but those of the store, in the order of their names. Raises OSError."""
    for path in sorted(data_dir.rglob("*")):
        inside = path.relative_to(data_dir)
        if inside.parts[0] in _NOT_KEPT or inside.name.startswith(".") or not path.is_file():
            continue
        yield SavedFile(inside.as_posix(), path.stat().st_mode & 0o777, path.read_bytes())


def refuse_other_files(data_dir: Path, files: Iterable[SavedFile]) -> None:
    """Raises BackupError where a file is there already and is another one."""
    for each in files:
        path = _place(data_dir, each)
        if path.exists() and path.read_bytes() != each.content:
            raise BackupError(
                f"{path} is there already and is another one than in the backup: "
                "use another --data-dir, or --without-files to keep those that are there"
            )


def put_files(data_dir: Path, files: Iterable[SavedFile]) -> int:
    """Write the files with their modes; return how many there are. Raises BackupError, OSError."""
    written = 0
    for each in files:
        written += 1
        path = _place(data_dir, each)
        for folder in reversed(path.relative_to(data_dir).parents[:-1]):
            make_directory(data_dir / folder)
        write_atomically(path, each.content, mode=each.mode)
    return written


def _place(data_dir: Path, file: SavedFile) -> Path:
    inside = PurePosixPath(file.path)
    if inside.is_absolute() or ".." in inside.parts or os.path.isabs(file.path):
        raise BackupError(f"the backup has a file {file.path}, which would be outside of the data directory")
    return data_dir / inside

"""What is in the data directory is its owner's alone: whoever can write there can become anybody, and whoever can read
a key can, too.

What is ours is tightened, and that is logged. What another user owns can not be: that user could loosen it again.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pilothouse.controlplane.data_dir_errors import DataDirUnsafe

log = logging.getLogger(__name__)

_WRITTEN_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE = (".key", ".kubeconfig", ".db", ".db-wal", ".db-shm")


def make_private(directory: Path) -> None:
    """Takes from others what they may do in the directory and with its files: to write any, to read keys and the store.
    Raises DataDirUnsafe for what is neither ours nor root's, OSError."""
    trusted = {os.geteuid(), 0}
    for path, found in _everything(directory):
        if found.st_uid not in trusted:
            raise DataDirUnsafe(
                f"--data-dir {directory}: {path} belongs to user {found.st_uid}, who could change it: "
                "use a directory of your own"
            )
        wrong = found.st_mode & (_OPEN_TO_OTHERS if _is_private(path, found) else _WRITTEN_BY_OTHERS)
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


def _is_private(path: Path, found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and path.name.endswith(_PRIVATE)


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

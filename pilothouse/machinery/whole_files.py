"""Files that are whole or not there: written aside, synced, then renamed into place; and directories that stay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from pilothouse.machinery.platform import replace_file, set_mode, sync_directory, sync_file

PRIVATE: Final = 0o600
PUBLIC: Final = 0o644


def write_atomically(path: Path, content: bytes, *, mode: int) -> None:
    with written_aside(path, mode=mode) as file:
        file.write(content)


@contextmanager
def written_aside(path: Path, *, mode: int) -> Iterator[IO[bytes]]:
    """A file beside the path that becomes it, on disk, when the block ends well, and is gone when it does not."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with open(descriptor, "wb") as file:
            set_mode(file.fileno(), mode)
            yield file
            file.flush()
            sync_file(file.fileno())
        replace_file(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Make a private directory and its parents where they do not exist. Their names survive a power cut."""
    missing = [path, *path.parents]
    while missing and missing[-1].is_dir():
        missing.pop()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for directory in reversed(missing):
        sync_directory(directory.parent)

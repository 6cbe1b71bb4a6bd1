"""Atomic file writes (temporary file, sync, rename), durable directories, and lock files.

A lock file is held by at most one process and released when the process ends for any reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from pilothouse.machinery.platform import (
    BINARY,
    close_locked,
    lock_file,
    replace_file,
    set_mode,
    sync_directory,
    sync_file,
)

PRIVATE: Final = 0o600
PUBLIC: Final = 0o644


def write_atomically(path: Path, content: bytes, *, mode: int) -> None:
    with written_aside(path, mode=mode) as file:
        file.write(content)


@contextmanager
def written_aside(path: Path, *, mode: int) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` durably on success and is removed on failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with open(descriptor, "wb") as file:
            set_mode(file.fileno(), mode)
            yield file
            file.flush()
            sync_file(file.fileno())
        replace_file(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Create a private directory and its missing parents. The directories survive a power failure."""
    missing = [path, *path.parents]
    while missing and missing[-1].is_dir():
        missing.pop()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for directory in reversed(missing):
        sync_directory(directory.parent)


_OPEN = os.O_RDWR | os.O_CREAT | BINARY


class LockHeld(Exception):
    """Another process holds the lock."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"held by pid {holder}")
        self.holder = holder
        """Process id of the holder, or "unknown"."""


class HeldFile:
    """A locked file whose content is the holder's process id."""

    def __init__(self, path: Path) -> None:
        """Raises LockHeld, OSError."""
        self._file: int | None = os.open(path, _OPEN, 0o600)
        try:
            lock_file(self._file, wait=False)
        except BlockingIOError:
            holder = os.read(self._file, 32).decode(errors="replace").strip()
            os.close(self._file)
            raise LockHeld(holder or "unknown") from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Idempotent."""
        if self._file is not None:
            close_locked(self._file)
            self._file = None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock, and hold it until the block ends. Raises OSError."""
    file = os.open(path, _OPEN, 0o600)
    try:
        lock_file(file, wait=True)
    except BaseException:
        os.close(file)
        raise
    try:
        yield
    finally:
        close_locked(file)

"""Lock files: held by one process at a time, and released when that process ends in whatever way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pilothouse.machinery.platform import BINARY, close_locked, lock_file

_OPEN = os.O_RDWR | os.O_CREAT | BINARY


class LockHeld(Exception):
    """Another process holds the lock."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"held by pid {holder}")
        self.holder = holder
        """Its process id, or "unknown"."""


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

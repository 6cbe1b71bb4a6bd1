"""The data directory: private to its owner, and used by one process at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from pilothouse.controlplane.data_dir_errors import DataDirInUse
from pilothouse.controlplane.privacy import make_private


class DataDir:
    """Held from `open` until `close`, or until the process ends in whatever way."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> DataDir:
        """Makes the directory if it is not there, and private if it is. Raises DataDirInUse, DataDirUnsafe, OSError."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(path)
        lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 32).decode().strip()
            os.close(lock)
            raise DataDirInUse(
                f"--data-dir {path} is in use by another pilothouse (pid {holder or 'unknown'})"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return cls(path, lock)

    @property
    def store(self) -> Path:
        return self.path / "store.db"

    def close(self) -> None:
        os.close(self._lock)

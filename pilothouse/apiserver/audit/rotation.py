"""A file that is set aside when it has grown, under a name with the time; old ones go by number and by age."""

from __future__ import annotations

import gzip
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

_DAY = 86400.0


class RotatedFile:
    """`max_age` is in days; 0 keeps files of any age, number and size."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = 0,
        max_backups: int = 0,
        max_age: int = 0,
        compress: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Raises OSError."""
        self._path = path
        self._max_bytes, self._max_backups, self._max_age = max_bytes, max_backups, max_age
        self._compress = compress
        self._now = now
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._opened()

    def write(self, data: bytes) -> None:
        """Raises OSError. What is written at once is never torn apart between two files."""
        if self._max_bytes and self._file.tell() and self._file.tell() + len(data) > self._max_bytes:
            self._rotate()
        self._file.write(data)
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _opened(self) -> BinaryIO:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "ab")

    def _rotate(self) -> None:
        self._file.close()
        moment = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
        aside = self._path.with_name(f"{self._path.stem}-{moment}{self._path.suffix}")
        self._path.rename(aside)
        self._file = self._opened()
        if self._compress:
            _compress(aside)
        self._drop_old()

    def _drop_old(self) -> None:
        backups = sorted(self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}*"), reverse=True)
        if self._max_backups:
            for surplus in backups[self._max_backups :]:
                surplus.unlink(missing_ok=True)
            backups = backups[: self._max_backups]
        if self._max_age:
            oldest = self._now() - self._max_age * _DAY
            for backup in backups:
                if backup.stat().st_mtime < oldest:
                    backup.unlink(missing_ok=True)


def _compress(path: Path) -> None:
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    path.unlink()

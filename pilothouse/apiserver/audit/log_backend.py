"""Events as lines of a rotated file or standard output, in JSON or in the legacy format."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import orjson

from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.platform import BINARY, CAN_RENAME_OPEN_FILES, lock_file, unlock_file


class LineWriter(Protocol):
    def write(self, data: bytes) -> None:
        """Raises OSError."""

    def close(self) -> None: ...


class StandardOutput:
    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        return None


class LogBackend:
    """Writes events as lines; not thread-safe."""

    def __init__(self, lines: LineWriter, *, legacy: bool = False) -> None:
        self._lines = lines
        self._legacy = legacy

    @classmethod
    def open(cls, path: str, file: RotatedFile | None, *, legacy: bool) -> LogBackend:
        if path == "-":
            return cls(StandardOutput(), legacy=legacy)
        return cls(file or RotatedFile(Path(path)), legacy=legacy)

    def send(self, events: list[Json]) -> None:
        """Raises OSError."""
        self._lines.write(
            b"".join(
                (legacy_line(event).encode() + b"\n" if self._legacy else orjson.dumps(event) + b"\n")
                for event in events
            )
        )

    def close(self) -> None:
        self._lines.close()


def legacy_line(event: Json) -> str:
    """Return the event in upstream's legacy format, without newline."""
    user, acting = event.get("user") or {}, event.get("impersonatedUser")
    reference, status = event.get("objectRef") or {}, event.get("responseStatus")
    fields = {
        "id": event["auditID"],
        "stage": event["stage"],
        "ip": next(iter(event.get("sourceIPs") or ()), "<unknown>"),
        "method": event["verb"],
        "user": user.get("username") or "<none>",
        "groups": _listed(user.get("groups")) or "<none>",
        "as": acting["username"] if acting else "<self>",
        "asgroups": (_listed(acting.get("groups")) if acting else "") or "<lookup>",
        "user-agent": event.get("userAgent") or "",
        "namespace": reference.get("namespace") or "<none>",
        "uri": event["requestURI"],
        "response": str(status["code"]) if status else "<deferred>",
    }
    line = " ".join(f"{name}={quote(value)}" for name, value in fields.items())
    return f"{event['requestReceivedTimestamp']} AUDIT: {line}"


def _listed(names: list[str] | None) -> str:
    return ",".join(quote(name) for name in names or ())


_DAY = 86400.0


class RotatedFile:
    """A rotating file: full files are renamed with a timestamp, and backups expire by number and age.

    `max_age` is in days; 0 disables a limit.
    """

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
        """Open the file. Raises OSError."""
        self._path = path
        self._max_bytes, self._max_backups, self._max_age = max_bytes, max_backups, max_age
        self._compress = compress
        self._now = now
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._opened()

    def write(self, data: bytes) -> None:
        """Write the data to a single file, never split by a rotation. Raises OSError."""
        if self._max_bytes:
            self._make_room(len(data))
        # Normally a single call, so that appends of several processes do not interleave.
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]

    def close(self) -> None:
        os.close(self._file)

    def _opened(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY, 0o600)

    def _make_room(self, size: int) -> None:
        """Rotate a full file. With several writing processes, the lock holder rotates, and the others reopen the
        path."""
        while not self._is_current():
            self._reopen()
        if not self._is_full(size):
            return
        lock_file(self._file, wait=True)
        if self._is_current() and self._is_full(size):
            self._rotate()
        else:
            unlock_file(self._file)
            self._make_room(size)

    def _is_full(self, size: int) -> bool:
        length = os.fstat(self._file).st_size
        return length > 0 and length + size > self._max_bytes

    def _is_current(self) -> bool:
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._file))

    def _reopen(self) -> None:
        os.close(self._file)
        self._file = self._opened()

    def _rotate(self) -> None:
        """Rename and reopen the file. Closing the old file releases its lock, after the path refers to the new file
        where possible."""
        aside = self._unused_name()
        if CAN_RENAME_OPEN_FILES:
            self._path.rename(aside)
            self._reopen()
        else:
            os.close(self._file)
            try:
                self._path.rename(aside)
            finally:
                self._file = self._opened()
        if self._compress:
            _compress(aside)
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

    def _unused_name(self) -> Path:
        """Return an unused timestamped name; two files may fill up within a millisecond."""
        now = datetime.fromtimestamp(self._now(), UTC)
        while True:
            moment = now.strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
            aside = self._path.with_name(f"{self._path.stem}-{moment}{self._path.suffix}")
            if not aside.exists() and not aside.with_name(f"{aside.name}.gz").exists():
                return aside
            now += timedelta(milliseconds=1)


def _compress(path: Path) -> None:
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    path.unlink()

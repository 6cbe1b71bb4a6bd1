"""Events as lines of a file that is rotated, or of standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

import orjson

from pilothouse.apiserver.audit.legacy_format import legacy_line
from pilothouse.apiserver.audit.rotation import RotatedFile
from pilothouse.machinery.objects import Json


class Lines(Protocol):
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
    """Called from one thread at a time."""

    def __init__(self, lines: Lines, *, legacy: bool = False) -> None:
        self._lines = lines
        self._legacy = legacy

    @classmethod
    def open(cls, path: str, file: RotatedFile | None, *, legacy: bool) -> LogBackend:
        if path == "-":
            return cls(StandardOutput(), legacy=legacy)
        return cls(file or RotatedFile(Path(path)), legacy=legacy)

    def send(self, events: list[Json]) -> None:
        """Raises OSError."""
        self._lines.write(b"".join(self._line(event) for event in events))

    def close(self) -> None:
        self._lines.close()

    def _line(self, event: Json) -> bytes:
        return legacy_line(event).encode() + b"\n" if self._legacy else orjson.dumps(event) + b"\n"

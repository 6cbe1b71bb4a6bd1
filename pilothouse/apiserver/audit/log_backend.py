"""Events as lines of a rotated file or standard output, in JSON or in the legacy format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol

import orjson

from pilothouse.apiserver.audit.rotation import RotatedFile
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json


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

"""Options of a log request."""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.http import Request
from pilothouse.machinery import server_time
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.times import parse_time

ALL: Final = "All"


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float | None = None
    """Seconds since the epoch."""
    tail: int | None = None
    limit: int | None = None
    stream: str = ALL

    @classmethod
    def of(cls, request: Request) -> LogOptions:
        """Parse the query. Raises ValueError."""
        return cls(
            follow=request.param("follow") in ("true", "1"),
            previous=request.param("previous") in ("true", "1"),
            timestamps=request.param("timestamps") in ("true", "1"),
            since=_since(request),
            tail=_number(request.param("tailLines")),
            limit=_number(request.param("limitBytes")),
            stream=request.param("stream") or ALL,
        )


def _number(text: str) -> int | None:
    return int(text) if text else None


def _since(request: Request) -> float | None:
    if seconds := _number(request.param("sinceSeconds")):
        return server_time.wall() - seconds
    moment = parse_time(request.param("sinceTime")) if request.param("sinceTime") else None
    return None if moment is None else moment.timestamp()

"""A session in a container, independent of the protocol: streams and final status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import orjson

from pilothouse.apiserver.http import Request
from pilothouse.apiserver.proxy.remote_command import SessionStreams
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.nodes.containers.process import Input, Output

CREATION_SECONDS: Final = 30.0
"""Seconds for the client to open its streams."""


@dataclass(frozen=True, slots=True)
class Session:
    stdin: Input
    stdout: Output
    stderr: Output
    tty: bool


Work: TypeAlias = Callable[[Session], Awaitable[Json]]
"""Runs the session, and returns its final Status."""


class Nowhere:
    """Discards output."""

    async def write(self, data: bytes) -> None:
        pass


def wanted_streams(request: Request) -> SessionStreams | None:
    """Return the requested streams; None if the request names none."""
    tty = request.param("tty") == "1"
    streams = SessionStreams(
        stdin=request.param("input") == "1",
        stdout=request.param("output") == "1",
        stderr=request.param("error") == "1" and not tty,
        tty=tty,
    )
    return streams if streams.stdin or streams.stdout or streams.stderr else None


def status_bytes(status: Json, *, as_json: bool) -> bytes:
    """Return the content of the error channel; old protocols carry only the message of a failure."""
    if as_json:
        return orjson.dumps(status)
    return b"" if status["status"] == "Success" else str(status.get("message") or "").encode()

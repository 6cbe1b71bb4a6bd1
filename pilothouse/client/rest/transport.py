"""Transport interface: over HTTP (http_transport.py) or in-process (connect.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from typing import Protocol

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`target` is the percent-encoded path with its query."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout: float | None = None
    """Seconds until the complete response must have arrived; None = no limit."""
    repeated_headers: tuple[tuple[str, str], ...] = ()
    """Headers that occur more than once, such as Impersonate-Group; sent after `headers`."""


class HttpResponse(Protocol):
    """Response whose head has arrived. Must be read to the end or closed."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header names in lower case; repeated headers are joined with commas."""

    async def read(self) -> bytes:
        """Return the complete body. Raises ConnectionFailed when the connection breaks."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in chunks of arbitrary size. Raises ConnectionFailed when the connection breaks."""

    async def close(self) -> None:
        """Discard the rest of the body and notify the server."""


class Transport(Protocol):
    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send the request; return when the response head has arrived. Raises ConnectionFailed."""

    async def close(self) -> None: ...

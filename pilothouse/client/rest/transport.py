"""The way of a request to the server: over HTTP (http_transport.py) or by a call (asgi_transport.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from typing import Protocol

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`target` is the path with its query, already quoted."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout: float | None = None
    """Seconds until the whole answer must be there; None waits for ever."""


class HttpResponse(Protocol):
    """An answer whose head has arrived. It must be read to its end or closed."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case; the values of a name that came twice are joined with commas."""

    async def read(self) -> bytes:
        """The whole body. Raises ConnectionFailed when it breaks off."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, in pieces of any size. Raises ConnectionFailed when it breaks off."""

    async def close(self) -> None:
        """Gives up the rest of the body; the server is told."""


class Transport(Protocol):
    async def send(self, request: HttpRequest) -> HttpResponse:
        """Raises ConnectionFailed."""

    async def close(self) -> None: ...

"""What flows through the house: a Request in, a Response out. ASGI is translated at the edge (serving/asgi.py) only.

A handler is `async (Request) -> Response`; a filter is a function from handler to handler;
a delegation target is a handler.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from pilothouse.apiserver.audit.annotations import METADATA, Annotations
from pilothouse.apiserver.beside_the_loop import Weight
from pilothouse.apiserver.query_string import parse_query
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    import asyncio

    from pilothouse.apiserver.audit.context import AuditContext
    from pilothouse.apiserver.authn.user import User
    from pilothouse.apiserver.request_info import RequestInfo

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Names in lower case, as HTTP/2 wants them."""

ReadBody: TypeAlias = Callable[[int], Awaitable[bytes]]
"""Reads the whole request body, or raises RequestEntityTooLarge when it is longer than the limit given."""


@dataclass(slots=True, eq=False)
class Request:
    """One HTTP request. The filters fill in what they find out (`info`, `user`, …) on the way in."""

    method: str
    path: str
    query_string: str
    headers: Headers = field(repr=False)  # tokens are among them
    read_body: ReadBody
    scheme: str = "https"
    http_version: str = "1.1"
    client: tuple[str, int] | None = None
    transport: asyncio.Transport | None = None
    """The connection, for the peer's certificate and for upgrades; None for in-process calls."""
    disconnected: Callable[[], Awaitable[None]] | None = None
    """Returns when the client has gone away."""
    stream_body: Callable[[], AsyncIterator[bytes]] | None = None
    """The body as it comes, instead of read_body; None for in-process calls."""

    audit_id: str = ""
    info: RequestInfo = field(default=None)  # type: ignore[assignment]  # set by the request info filter
    user: User = field(default=None)  # type: ignore[assignment]  # set by the authentication filter
    is_routed: bool = False
    """Whether something is installed that answers it. Only then are the names in its path ours and not made up."""
    warnings: list[str] = field(default_factory=list)
    answer_headers: Headers = field(default_factory=list)
    """What the answer gets besides its own headers, be it a success or a refusal."""
    audit: AuditContext | None = None
    """Where the request is audited: what it and its answer look like is told to this."""
    _weight: Weight | None = None
    _annotations: Annotations | None = None
    _query: dict[str, list[str]] | None = None
    _headers: dict[bytes, bytes] | None = field(default=None, repr=False)

    @property
    def query(self) -> dict[str, list[str]]:
        """Raises BadRequest where there are too many parameters."""
        if self._query is None:
            self._query = parse_query(self.query_string) if self.query_string else {}
        return self._query

    def set_query(self, query_string: str) -> None:
        self.query_string, self._query = query_string, None

    @property
    def weight(self) -> Weight:
        """How much the request is about. Not to be asked for before it is known whose it is."""
        if self._weight is None:
            self._weight = Weight(self.user.name if self.user is not None else "")
        return self._weight

    @property
    def annotations(self) -> Annotations:
        """What is said about the request in the audit log."""
        if self._annotations is None:
            self._annotations = Annotations()
        return self._annotations

    def annotate(self, key: str, value: str, level: str = METADATA) -> None:
        self.annotations.add(key, value, level)

    def param(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def header(self, name: bytes, default: str = "") -> str:
        """The first value of a header, whose name is given in lower case."""
        if self._headers is None:
            self._headers = dict(reversed(self.headers))
        value = self._headers.get(name)
        return default if value is None else value.decode("latin-1")


Stream: TypeAlias = AsyncIterator[bytes]
Upgrade: TypeAlias = Callable[["asyncio.Transport", bytes], Awaitable[None]]
"""Takes over the raw connection after a 101; gets what the client already sent beyond the request."""


class StreamBroken(Exception):
    """Where a stream comes from has gone. The answer ends so that its client sees that it is not whole."""


@dataclass(slots=True, eq=False)
class Response:
    """One HTTP answer: whole bytes, a stream (each item is flushed as it comes), or an upgrade."""

    status: int
    body: bytes | Stream = field(default=b"", repr=False)  # may hold secrets
    headers: Headers = field(default_factory=list)
    upgrade: Upgrade | None = None

    def with_header(self, name: bytes, value: bytes) -> Response:
        self.headers.append((name, value))
        return self


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Filter: TypeAlias = Callable[[Handler], Handler]


def text(status: int, body: str, **headers: Any) -> Response:
    """A plain-text answer, as net/http's Error writes it."""
    answer = Response(status, body.encode(), [(b"content-type", b"text/plain; charset=utf-8")])
    for name, value in headers.items():
        answer.with_header(name.replace("_", "-").encode(), str(value).encode())
    return answer

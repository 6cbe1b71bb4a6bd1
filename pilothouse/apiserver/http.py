"""HTTP as handlers see it: a Request in, a Response out.

The protocols in serving/ make the one from bytes and write the other; serving/asgi.py does it for calls by ASGI.

A handler is `async (Request) -> Response`; a filter is a function from handler to handler;
a delegation target is a handler.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import field
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from pilothouse.apiserver.audit.annotations import METADATA, Annotations
from pilothouse.apiserver.offload import Weight
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.percent import BadEscape, unescape

if TYPE_CHECKING:
    import asyncio

    from pilothouse.apiserver.audit.context import AuditContext
    from pilothouse.apiserver.authn.user import User
    from pilothouse.apiserver.endpoints.serializers.registry import Serializers
    from pilothouse.apiserver.request_info import RequestInfo
    from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher


_MAX_QUERY_PARAMETERS: Final = 10_000
"""net/url's limit. A query may be a megabyte long, and is read before anybody knows whose it is."""
LONGEST_READ: Final = 8 * 1024
"""Characters of a header or parameter that `Request.header` and `Request.param` return. A head may be a megabyte long,
and is read before anybody knows whose it is: a parser that is fed by them takes a few milliseconds at most."""
_BYTES_PER_FIELD: Final = 32
"""The weight of a header field in a request's head, whatever its length: RFC 7541, section 4.1."""


def parse_query(query: str) -> dict[str, list[str]]:
    """Return the values of each parameter as Go's net/url reads them: one that is badly escaped stands for itself, and
    one with a semicolon, which once separated parameters, is left out.

    Raises BadRequest when there are too many parameters.
    """
    if query.count("&") >= _MAX_QUERY_PARAMETERS:
        raise BadRequest("number of URL query parameters exceeded limit")
    parameters: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if pair and ";" not in pair:
            name, _, value = pair.partition("=")
            parameters.setdefault(_query_unescape(name), []).append(_query_unescape(value))
    return parameters


def _query_unescape(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    if text.isascii() and "%" not in text:
        return text
    try:
        return unescape(text.encode("latin-1")).decode("utf-8", "replace")
    except (BadEscape, UnicodeEncodeError):
        return text


Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Names in lower case, as HTTP/2 wants them."""

ReadBody: TypeAlias = Callable[[int], Awaitable[bytes]]
"""Reads the whole request body, or raises RequestEntityTooLarge when it is longer than the limit given."""


@dataclass(slots=True, eq=False)
class Request:
    """One HTTP request. The filters fill in what they find out (`info`, `user`, …) on the way in.

    >>> from pilothouse.apiserver import Request
    >>> async def no_body(limit: int) -> bytes:
    ...     return b""
    >>> Request("GET", "/api/v1/pods", "limit=5", [], no_body).param("limit")
    '5'
    """

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
    is_own: bool = False
    """Whether the server itself makes it."""
    deadline: float = inf
    """By when it is to be answered, on the monotonic clock; set by the timeout filter."""
    is_routed: bool = False
    """Whether something is installed that answers it. Only then are the names in its path ours and not made up."""
    spoken: Serializers | None = None
    """The media types of the resource that is asked for, in which errors are told, too; None until it is known."""
    warnings: list[str] = field(default_factory=list)
    answer_headers: Headers = field(default_factory=list)
    """Headers that the answer gets besides its own, be it a success or a refusal."""
    watched: Callable[[CacheWatcher], CacheWatcher] | None = None
    """With --testing: puts something between the events of this watch and who reads them."""
    on_delegation: Callable[[], None] | None = None
    """Gives back the seat that a watch has in flow control; set until the watch has begun."""
    audit: AuditContext | None = None
    """Where the request is audited: what it and its answer look like is told to this."""
    _weight: Weight | None = None
    _annotations: Annotations | None = None
    _query: dict[str, list[str]] | None = None
    _headers: dict[bytes, bytes] | None = field(default=None, repr=False)
    _header_names: bytes | None = field(default=None, repr=False)

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
        """The size of the request: at first that of its query and of its many fields, later that of its body and of
        stored objects. Not to be asked for before it is known whose it is."""
        if self._weight is None:
            head = max(len(self.query_string), len(self.headers) * _BYTES_PER_FIELD)
            self._weight = Weight(self.user.name if self.user is not None else "", head)
        return self._weight

    @property
    def is_offloaded(self) -> bool:
        """Whether work of the request is done beside the loop at this moment, and nothing else."""
        return self._weight is not None and self._weight.is_offloaded

    @property
    def annotations(self) -> Annotations:
        """The request's annotations in the audit log."""
        if self._annotations is None:
            self._annotations = Annotations()
        return self._annotations

    def annotate(self, key: str, value: str, level: str = METADATA) -> None:
        self.annotations.add(key, value, level)

    def delegated(self) -> None:
        """Tell flow control that another server has the request: a watch that this server only passes on holds no
        seat, however long the other server takes to begin it."""
        if self.on_delegation is not None:
            self.on_delegation()

    def param(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter, of a long one the first LONGEST_READ characters."""
        values = self.query.get(name)
        return values[0][:LONGEST_READ] if values else default

    def whole_param(self, name: str) -> str:
        """Return the first value of a query parameter, up to a megabyte. Parse the value only by `weight.carry`."""
        values = self.query.get(name)
        return values[0] if values else ""

    @property
    def header_names(self) -> bytes:
        """The names of all headers, each behind a zero byte: to see at once that there is none of some kind."""
        if self._header_names is None:
            self._header_names = b"\0" + b"\0".join(dict(self.headers))
        return self._header_names

    def set_headers(self, headers: Headers) -> None:
        self.headers, self._headers, self._header_names = headers, None, None

    def header(self, name: bytes, default: str = "") -> str:
        """Return the first value of a header, of a long one the first LONGEST_READ characters. The name is given in
        lower case."""
        if self._headers is None:
            self._headers = dict(reversed(self.headers))
        value = self._headers.get(name)
        return default if value is None else value[:LONGEST_READ].decode("latin-1")

    def whole_header(self, name: bytes) -> str:
        """Return the first value of a header, up to a megabyte. Compare or search the value, but do not parse it."""
        if self._headers is None:
            self._headers = dict(reversed(self.headers))
        return self._headers.get(name, b"").decode("latin-1")


Stream: TypeAlias = AsyncIterator[bytes]
Upgrade: TypeAlias = Callable[["asyncio.Transport", bytes], Awaitable[None]]
"""Takes over the raw connection after a 101; gets what the client already sent beyond the request."""


class StreamBroken(Exception):
    """The source of a streamed body has gone. The answer ends so that its client sees that it is not whole."""


@dataclass(slots=True, eq=False)
class Response:
    """One HTTP answer: whole bytes, a stream (each item is flushed as it comes), or an upgrade.

    >>> from pilothouse.apiserver import Response
    >>> Response(200, b"hello").with_header(b"content-type", b"text/plain").headers
    [(b'content-type', b'text/plain')]
    """

    status: int
    body: bytes | Stream = field(default=b"", repr=False)  # may hold secrets
    headers: Headers = field(default_factory=list)
    upgrade: Upgrade | None = None

    def with_header(self, name: bytes, value: bytes) -> Response:
        self.headers.append((name, value))
        return self


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Filter: TypeAlias = Callable[[Handler], Handler]


NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
"""Browsers go by the content type that an answer says it has."""


def raw_json(status: int, value: object) -> Response:
    """Indented JSON without negotiation, as upstream writes what is no API object."""
    return Response(status, orjson.dumps(value, option=orjson.OPT_INDENT_2), [(b"content-type", b"application/json")])


def text(status: int, body: str, **headers: Any) -> Response:
    """A plain-text answer, as net/http's Error writes it."""
    answer = Response(status, body.encode(), [(b"content-type", b"text/plain; charset=utf-8")])
    for name, value in headers.items():
        answer.with_header(name.replace("_", "-").encode(), str(value).encode())
    return answer

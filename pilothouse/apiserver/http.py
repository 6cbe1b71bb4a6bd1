"""The HTTP model of handlers: a Request in, a Response out.

The protocols in serving/ create requests from bytes and write responses; serving/asgi.py does the same for ASGI.

A handler is `async (Request) -> Response`; a filter is a function from handler to handler; a delegation target is a
handler.
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
from pilothouse.machinery.errors import BadRequest, RequestEntityTooLarge
from pilothouse.machinery.percent import BadEscape, unescape

if TYPE_CHECKING:
    import asyncio

    from pilothouse.apiserver.audit.context import AuditContext
    from pilothouse.apiserver.authn.user import User
    from pilothouse.apiserver.endpoints.serializers.registry import Serializers
    from pilothouse.apiserver.request_info import RequestInfo
    from pilothouse.apiserver.storage.cacher.watcher import CacheWatcher
from ipaddress import IPv6Address, ip_address

_MAX_QUERY_PARAMETERS: Final = 10_000
"""The limit of net/url. A query of up to a megabyte is parsed before authentication."""
LONGEST_READ: Final = 8 * 1024
"""Maximum number of characters that `Request.header` and `Request.param` return. A head of up to a megabyte is read
before authentication; this limit bounds the cost of parsing values to a few milliseconds."""
_BYTES_PER_FIELD: Final = 32
"""Weight of a header field besides its length: RFC 7541, section 4.1."""


def parse_query(query: str) -> dict[str, list[str]]:
    """Return the values of each parameter, parsed as by Go's net/url: badly escaped values stay as they are, and
    parameters with a semicolon are dropped.

    Raises BadRequest for too many parameters.
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
"""Names are in lower case, as in HTTP/2."""

ReadBody: TypeAlias = Callable[[int], Awaitable[bytes]]
"""Reads the whole request body. Raises RequestEntityTooLarge above the given limit."""


def body_in_memory(body: bytes) -> ReadBody:
    """Return a reader of a body that was read before."""

    async def read_body(limit: int) -> bytes:
        if len(body) > limit:
            raise RequestEntityTooLarge.of(f"limit is {limit}")
        return body

    return read_body


@dataclass(slots=True, eq=False)
class Request:
    """One HTTP request. Filters set `info`, `user` and other attributes.

    >>> from pilothouse.apiserver import Request
    >>> async def no_body(limit: int) -> bytes:
    ...     return b""
    >>> Request("GET", "/api/v1/pods", "limit=5", [], no_body).param("limit")
    '5'
    """

    method: str
    path: str
    query_string: str
    headers: Headers = field(repr=False)  # may contain tokens
    read_body: ReadBody
    scheme: str = "https"
    http_version: str = "1.1"
    client: tuple[str, int] | None = None
    transport: asyncio.Transport | None = None
    """The connection, for the peer's certificate and for upgrades; None for in-process requests."""
    disconnected: Callable[[], Awaitable[None]] | None = None
    """Returns when the client has disconnected."""
    stream_body: Callable[[], AsyncIterator[bytes]] | None = None
    """Streams the body, as an alternative to read_body; None for in-process requests."""

    audit_id: str = ""
    info: RequestInfo = field(default=None)  # type: ignore[assignment]  # set by the request info filter
    user: User = field(default=None)  # type: ignore[assignment]  # set by the authentication filter
    is_determined: bool = True
    """Whether the path has a meaning. Otherwise upstream adds no Cache-Control and no HSTS header to the answer."""
    is_own: bool = False
    """Whether the server itself made the request."""
    deadline: float = inf
    """Deadline of the response on the monotonic clock; set by the timeout filter."""
    is_routed: bool = False
    """Whether a route matched. Only then do names in the path come from this server."""
    spoken: Serializers | None = None
    """The media types of the resource, also for errors; None until routed."""
    warnings: list[str] = field(default_factory=list)
    answer_headers: Headers = field(default_factory=list)
    """Additional headers of the response, also of an error response."""
    watched: Callable[[CacheWatcher], CacheWatcher] | None = None
    """With --testing: wraps the watcher of a watch."""
    on_delegation: Callable[[], None] | None = None
    """Releases the seats of a watch in flow control; set until the watch starts."""
    audit: AuditContext | None = None
    """The audit event of the request, if audited."""
    _weight: Weight | None = None
    _annotations: Annotations | None = None
    _query: dict[str, list[str]] | None = None
    _headers: dict[bytes, bytes] | None = field(default=None, repr=False)
    _header_names: bytes | None = field(default=None, repr=False)

    @property
    def query(self) -> dict[str, list[str]]:
        """The query parameters. Raises BadRequest for too many parameters."""
        if self._query is None:
            self._query = parse_query(self.query_string) if self.query_string else {}
        return self._query

    def set_query(self, query_string: str) -> None:
        self.query_string, self._query = query_string, None

    @property
    def weight(self) -> Weight:
        """The weight of the request: first the size of its query and head, later of its body and of stored objects.
        Requires the authenticated user."""
        if self._weight is None:
            head = max(len(self.query_string), len(self.headers) * _BYTES_PER_FIELD)
            self._weight = Weight(self.user.name if self.user is not None else "", head)
        return self._weight

    @property
    def is_offloaded(self) -> bool:
        """Whether the request's work currently runs in, or waits for, an offload thread."""
        return self._weight is not None and self._weight.is_offloaded

    @property
    def annotations(self) -> Annotations:
        """The audit annotations of the request."""
        if self._annotations is None:
            self._annotations = Annotations()
        return self._annotations

    def annotate(self, key: str, value: str, level: str = METADATA) -> None:
        self.annotations.add(key, value, level)

    def delegated(self) -> None:
        """Release the seats of a watch, because another server handles the request."""
        if self.on_delegation is not None:
            self.on_delegation()

    def param(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter, truncated to LONGEST_READ characters."""
        values = self.query.get(name)
        return values[0][:LONGEST_READ] if values else default

    def whole_param(self, name: str) -> str:
        """Return the first value of a query parameter, up to a megabyte. Parse the value only by `weight.run`."""
        values = self.query.get(name)
        return values[0] if values else ""

    @property
    def header_names(self) -> bytes:
        """The names of all headers, each after a zero byte, for a fast check of prefixes."""
        if self._header_names is None:
            self._header_names = b"\0" + b"\0".join(dict(self.headers))
        return self._header_names

    def set_headers(self, headers: Headers) -> None:
        self.headers, self._headers, self._header_names = headers, None, None

    def header(self, name: bytes, default: str = "") -> str:
        """Return the first value of a header, truncated to LONGEST_READ characters. The name is in lower case."""
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
"""Takes over the raw connection after a 101, with the bytes that the client sent after the request."""


class StreamBroken(Exception):
    """The source of a streamed body is gone. The response ends abnormally, so that the client detects the
    truncation."""


@dataclass(slots=True, eq=False)
class Response:
    """One HTTP response: bytes, a stream (each item is flushed), or an upgrade.

    >>> from pilothouse.apiserver import Response
    >>> Response(200, b"hello").with_header(b"content-type", b"text/plain").headers
    [(b'content-type', b'text/plain')]
    """

    status: int
    body: bytes | Stream = field(default=b"", repr=False)  # may contain secrets
    headers: Headers = field(default_factory=list)
    upgrade: Upgrade | None = None

    def with_header(self, name: bytes, value: bytes) -> Response:
        self.headers.append((name, value))
        return self


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Filter: TypeAlias = Callable[[Handler], Handler]


NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
"""Makes browsers respect the content type."""


def raw_json(status: int, value: object) -> Response:
    """Return indented JSON without negotiation, for values that are not API objects."""
    return Response(status, orjson.dumps(value, option=orjson.OPT_INDENT_2), [(b"content-type", b"application/json")])


def text(status: int, body: str, **headers: Any) -> Response:
    """Return a plain-text response in the format of net/http's Error."""
    answer = Response(status, body.encode(), [(b"content-type", b"text/plain; charset=utf-8")])
    for name, value in headers.items():
        answer.with_header(name.replace("_", "-").encode(), str(value).encode())
    return answer


_MOST_PROXIES = 100
"""Maximum number of evaluated addresses, nearest first: clients can send any number, and the nearest proxies are
trusted."""


def source_ips(request: Request) -> list[str]:
    """Return the addresses that proxies report, farthest first, and the address of the peer last."""
    forwarded = request.whole_header(b"x-forwarded-for") or request.header(b"x-real-ip")
    parts = forwarded[-LONGEST_READ:].rsplit(",", _MOST_PROXIES)[-_MOST_PROXIES:] if forwarded else ()
    named = [address for part in parts if (address := _address(part))]
    connected = _address(request.client[0]) if request.client else ""
    if connected and (not named or named[-1] != connected):
        named.append(connected)
    return named


def _address(text: str) -> str:
    """Normalize an address: a dual-stack socket maps IPv4 into IPv6."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)

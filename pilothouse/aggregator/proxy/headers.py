"""Headers of forwarded requests and of their responses."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote_plus

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.http import Headers, Request
from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.upgrades import CORS, HOP_BY_HOP, forwarded_for
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.percent import BadEscape, unescape

_REPLACED = frozenset(
    {b"audit-id", b"expect", b"host", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-uri"}
)
_CREDENTIALS = frozenset({b"authorization"})
_NOT_FORWARDED = HOP_BY_HOP | _REPLACED | _CREDENTIALS
"""The client's credentials are meant for this server; the identity headers replace them."""
_OWN_ANSWER = CORS | {b"audit-id", b"date"}
"""Response headers that this server sets itself."""
_REMOTE = b"x-remote-"
_TOKEN = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SWITCH = (b"connection", b"upgrade")
_MOST_NAMED = 256
"""Maximum number of names read from Connection headers."""


def forwarded(request: Request, target: Target) -> Headers:
    """Return the headers for the aggregated server, including the identity headers."""
    named = _named_by_connection(request.headers)
    headers = [
        (name, value)
        for name, value in request.headers
        if name not in _NOT_FORWARDED and name not in named and not name.startswith(_REMOTE)
    ]
    authority = target.authority.encode("latin-1")
    return [
        (b"host", authority),
        *headers,
        *forwarded_for(request),
        (b"x-forwarded-host", authority),
        (b"x-forwarded-proto", b"https"),
        (b"x-forwarded-uri", target.path.encode("latin-1")),
        (b"audit-id", request.audit_id.encode("latin-1")),
        *user_headers(request.user),
    ]


def forwarded_upgrade(request: Request, target: Target) -> Headers:
    """Return the headers of `forwarded` plus the upgrade headers."""
    wish = [(name, value) for name, value in request.headers if name in _SWITCH]
    return [*forwarded(request, target), *wish]


def answered(headers: Headers) -> Headers:
    """Return the response headers for the client."""
    named = _named_by_connection(headers)
    return [
        (name, value)
        for name, value in headers
        if name not in HOP_BY_HOP and name not in named and name not in _OWN_ANSWER
    ]


def user_headers(user: User) -> Headers:
    return [(b"x-remote-user", _value(user.name)), *_more_of(user)]


def _more_of(user: User) -> Iterator[tuple[bytes, bytes]]:
    if user.uid:
        yield b"x-remote-uid", _value(user.uid)
    for group in user.groups:
        yield b"x-remote-group", _value(group)
    for key, values in user.extra.items():
        for value in values:
            yield _extra_name(key), _value(value)


@bounded_cache(entries=1024, key_bytes=256)
def _extra_name(key: str) -> bytes:
    """Return the header name of an extra key; characters outside the token set are percent-encoded."""
    escaped = "".join(chr(byte) if byte in _TOKEN else f"%{byte:02X}" for byte in key.encode())
    return f"x-remote-extra-{escaped}".encode("ascii")


def _value(text: str) -> bytes:
    return text.encode()


def _named_by_connection(headers: Headers) -> frozenset[bytes] | set[bytes]:
    """Return the hop-by-hop headers that Connection lists."""
    listed = [value for name, value in headers if name == b"connection"]
    if not listed:
        return frozenset()
    parts = b",".join(listed).split(b",", _MOST_NAMED)[:_MOST_NAMED]
    return {part.strip().lower() for part in parts}


def reencoded(query: str) -> str:
    """Return the query sorted by name; values of one name keep their order. Parameters that Go cannot parse are
    dropped."""
    parameters = sorted(_parameters(query.encode("latin-1", "replace")), key=lambda parameter: parameter[0])
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in parameters)


def _parameters(query: bytes) -> Iterator[tuple[bytes, bytes]]:
    for pair in query.split(b"&"):
        if not pair or b";" in pair:
            continue
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        try:
            yield unescape(name), unescape(value)
        except BadEscape:
            continue

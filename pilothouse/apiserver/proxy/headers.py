"""Headers that no proxy passes on, and the one that every proxy adds."""

from __future__ import annotations

from pilothouse.apiserver.http import Headers, Request

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
CORS = frozenset(b"access-control-allow-" + name for name in (b"credentials", b"headers", b"methods", b"origin"))
"""CORS headers of the other server are dropped: what other origins may do is this server's own business."""


def forwarded_for(request: Request) -> Headers:
    """Return X-Forwarded-For: the addresses the request came by, and last its peer's; empty where none is known."""
    if request.client is None:
        return []
    earlier = [value for name, value in request.headers if name == b"x-forwarded-for"]
    return [(b"x-forwarded-for", b", ".join([*earlier, request.client[0].encode()]))]

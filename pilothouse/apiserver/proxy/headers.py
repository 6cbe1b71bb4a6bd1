"""Hop-by-hop headers, and X-Forwarded-For."""

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
"""CORS headers of the backend, dropped: this server alone decides about cross-origin access."""


def forwarded_for(request: Request) -> Headers:
    """Return X-Forwarded-For with the peer's address appended; empty without a known peer."""
    if request.client is None:
        return []
    earlier = [value for name, value in request.headers if name == b"x-forwarded-for"]
    return [(b"x-forwarded-for", b", ".join([*earlier, request.client[0].encode()]))]

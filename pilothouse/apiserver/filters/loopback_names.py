"""Loopback names: a port without authentication responds only to requests for this machine.

Any page in a browser can send requests to the port. DNS rebinding is detected by the Host header, other pages by the
Origin header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address

from pilothouse.apiserver.filters.cors import origin_matcher
from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.gofmt import quote

_AUTHORITY = re.compile(r"(\[::1\]|localhost|127\.[0-9.]+)(?::[0-9]*)?", re.ASCII | re.IGNORECASE)


def with_loopback_names(origins: Sequence[str]) -> Filter:
    """Reject foreign Host and Origin headers. `origins`: allowed origins, from --cors-allowed-origins."""
    is_allowed_origin = origin_matcher(origins)

    def wrap(handler: Handler) -> Handler:
        async def check_names(request: Request) -> Response:
            host, origin = request.header(b"host"), request.header(b"origin")
            if not names_loopback(host):
                raise _refusal("Host", host)
            if origin and not (names_loopback(origin.partition("://")[2]) or is_allowed_origin(origin)):
                raise _refusal("Origin", origin)
            return await handler(request)

        return check_names

    return wrap


def names_loopback(authority: str) -> bool:
    """Return whether the authority is localhost, in 127.0.0.0/8 or [::1], with or without a port."""
    match = _AUTHORITY.fullmatch(authority)
    if match is None or not match[1].startswith("127."):
        return match is not None
    try:
        return IPv4Address(match[1]).is_loopback
    except ValueError:
        return False


def _refusal(header: str, found: str) -> Forbidden:
    reason = "the insecure port answers only to localhost, 127.0.0.0/8 and [::1]"
    return Forbidden(f"forbidden: {reason}, not to the {header} {quote(found)}", details={})

"""The target of a request: its path decoded as Go's net/url does it, its query left as it came."""

from __future__ import annotations

import re

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.percent import BadEscape, unescape

_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/]*").match


class BadTarget(ValueError):
    """The target is no path, or is badly escaped."""


@dataclass(frozen=True, slots=True)
class RequestTarget:
    path: str
    query_string: str


# Clients ask for the same things again and again.
@bounded_cache(entries=4096, key_bytes=512)
def parse_target(target: bytes) -> RequestTarget:
    path, _, query = target.partition(b"?")
    if not path.startswith(b"/"):
        path = _origin_form(path)
    if b"%" in path:
        try:
            path = unescape(path)
        except BadEscape as error:
            raise BadTarget(str(error)) from None
    return RequestTarget(path.decode("utf-8", "replace"), query.decode("latin-1"))


def _origin_form(path: bytes) -> bytes:
    """The path of an absolute target, as proxies send it. `*` is the whole server."""
    if path == b"*":
        return path
    start = _ABSOLUTE(path)
    if start is None:
        raise BadTarget("invalid URI for request")
    return path[start.end() :] or b"/"

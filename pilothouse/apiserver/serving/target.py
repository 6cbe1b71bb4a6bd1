"""Request targets: path decoding like Go's net/url, with the query left unparsed."""

from __future__ import annotations

import re

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.percent import BadEscape, unescape

_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/]*").match


class BadTarget(ValueError):
    """The target is not a path, or has invalid escapes."""


@dataclass(frozen=True, slots=True)
class RequestTarget:
    path: str
    query_string: str


# Clients repeat requests.
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
    """Return the path of an absolute-form target, as sent by proxies. `*` denotes the whole server."""
    if path == b"*":
        return path
    start = _ABSOLUTE(path)
    if start is None:
        raise BadTarget("invalid URI for request")
    return path[start.end() :] or b"/"

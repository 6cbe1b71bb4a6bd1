"""The target of a request: its path decoded as Go's net/url does it, its query left as it came."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.percent import BadEscape, unescape

_CACHED_LENGTH: Final = 512
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://[^/]*").match


class BadTarget(ValueError):
    """The target is no path, or is badly escaped."""


@dataclass(frozen=True, slots=True)
class Target:
    path: str
    query_string: str


def parse_target(target: bytes) -> Target:
    """Short targets are remembered, for clients ask for the same things again and again."""
    return _parse_short(target) if len(target) <= _CACHED_LENGTH else _parse(target)


def _parse(target: bytes) -> Target:
    path, _, query = target.partition(b"?")
    if not path.startswith(b"/"):
        path = _origin_form(path)
    if b"%" in path:
        try:
            path = unescape(path)
        except BadEscape as error:
            raise BadTarget(str(error)) from None
    return Target(path.decode("utf-8", "replace"), query.decode("latin-1"))


_parse_short = lru_cache(maxsize=4096)(_parse)


def _origin_form(path: bytes) -> bytes:
    """The path of an absolute target, as proxies send it. `*` is the whole server."""
    if path == b"*":
        return path
    start = _ABSOLUTE(path)
    if start is None:
        raise BadTarget("invalid URI for request")
    return path[start.end() :] or b"/"

"""Request heads beyond what zttp reads: it takes 100 headers of 16 KiB, 64 KiB in all; net/http takes 1 MiB.

A long head is parsed here, as strictly. What it says about framing (lengths, codings, upgrades) is left to zttp, which
gets a short head with those fields alone; so there is one reader of bodies, and one opinion about where they end.
"""

from __future__ import annotations

import re
from typing import Final

from pilothouse.apiserver.http import Headers
from pilothouse.machinery.dataclass import dataclass

_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!-~\x80-\xff]+) (HTTP/1\.[01])").fullmatch
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t -~\x80-\xff]*)").fullmatch
_FRAMING: Final = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"expect", b"te", b"trailer"}
)


class BadHead(ValueError):
    """The head is malformed."""


@dataclass(frozen=True, slots=True)
class LongHead:
    target: bytes
    headers: Headers
    short: bytes
    """A head for zttp: the same request for /, with the framing fields."""


def parse_long_head(head: bytes) -> LongHead:
    """Reads a head up to and with its empty line."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    request = _REQUEST_LINE(first)
    if request is None:
        raise BadHead("malformed request line")
    headers = [_field(line) for line in lines]
    framing = [b"%b: %b\r\n" % field for field in headers if field[0] in _FRAMING]
    method, target, version = request.groups()
    return LongHead(target, headers, b"%b / %b\r\n%b\r\n" % (method, version, b"".join(framing)))


def _field(line: bytes) -> tuple[bytes, bytes]:
    found = _FIELD(line)
    if found is None:
        raise BadHead("malformed header field")
    return found[1].lower(), found[2].rstrip(b" \t")

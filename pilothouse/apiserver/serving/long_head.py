"""Request heads beyond what zttp reads: it takes 100 headers of 16 KiB, 64 KiB in all; net/http takes 1 MiB.

A long head is parsed here, as strictly. What it says about framing (lengths, codings, upgrades) is left to zttp, which
gets a short head with those fields alone; so there is one reader of bodies, and one opinion about where they end.

Heads with two opinions about that come here too. As in net/http, a body that is said to come in chunks does; its
Content-Length is forgotten, and the connection ends with the answer.
"""

from __future__ import annotations

import re
from typing import Final

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.serving.http1_framing import HEAD_END, BadHead, TooManyFields, check_codings
from pilothouse.machinery.dataclass import dataclass

_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!-~\x80-\xff]+) (HTTP/1\.[01])").fullmatch
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t -~\x80-\xff]*)").fullmatch
_FRAMING: Final = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"expect", b"te", b"trailer"}
)
_MOST_LINES: Final = 32 << 10
"""As many as HTTP/2 has room for in the same megabyte, where each field counts 32 bytes more than it has."""


@dataclass(frozen=True, slots=True)
class LongHead:
    target: bytes
    headers: Headers
    short: bytes
    """A head for zttp: the same request for /, with the framing fields."""
    ambiguous: bool
    """There were a Transfer-Encoding and a Content-Length."""


def parse_long_head(head: bytes) -> LongHead:
    """Reads a head up to and with its empty line. Raises BadHead."""
    if head.count(b"\r\n") > _MOST_LINES:
        raise TooManyFields("too many header fields")
    first, *lines = head.removesuffix(HEAD_END).split(b"\r\n")
    request = _REQUEST_LINE(first)
    if request is None:
        raise BadHead("malformed request line")
    method, target, version = request.groups()
    headers = [_field(line) for line in lines]
    ambiguous = _is_ambiguous(headers, version.removeprefix(b"HTTP/"))
    if ambiguous:
        headers = [field for field in headers if field[0] != b"content-length"]
    framing = [b"%b: %b\r\n" % field for field in headers if field[0] in _FRAMING]
    return LongHead(target, headers, b"%b / %b\r\n%b\r\n" % (method, version, b"".join(framing)), ambiguous)


def _is_ambiguous(headers: Headers, version: bytes) -> bool:
    """Raises BadHead where there is no one way to read the body."""
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    lengths = {value for name, value in headers if name == b"content-length"}
    if not codings:
        return False
    check_codings(codings, version)
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        raise BadHead("bad Content-Length")
    return bool(lengths)


def _field(line: bytes) -> tuple[bytes, bytes]:
    found = _FIELD(line)
    if found is None:
        raise BadHead("malformed header field")
    return found[1].lower(), found[2].rstrip(b" \t")

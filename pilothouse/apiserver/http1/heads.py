"""Strict parser for HTTP/1.1 heads of any length (RFC 9112), in Python.

Lines end with CRLF, fields are not folded, names are tokens, and values have no control characters except tabs. Body
lengths must be unambiguous. Like in net/http, chunked coding overrides Content-Length, and the connection then closes
after the response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pilothouse.apiserver.head_fields import FIELD_OVERHEAD
from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http1.framing import HEAD_END, BadMessage, MessageTooLarge, check_codings
from pilothouse.machinery.dataclass import dataclass

_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!#-~\x80-\xff]+) HTTP/(1\.[0-9])").fullmatch
_STATUS_LINE = re.compile(rb"HTTP/(1\.[0-9]) ([1-5][0-9]{2})(?: [\t -~\x80-\xff]*)?").fullmatch
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t -~\x80-\xff]*)").fullmatch
_BARE_LINE_END = re.compile(rb"(?<!\r)\n\r?\n|\n\n").search
_GREATEST_LENGTH: Final = (1 << 64) - 1
_MOST_DIGITS: Final = 40


@dataclass(slots=True)
class ParsedRequest:
    method: bytes
    target: bytes
    version: bytes
    headers: Headers
    is_chunked: bool
    is_ambiguous: bool
    """Whether both Transfer-Encoding and Content-Length were present."""


@dataclass(slots=True)
class ParsedResponse:
    version: bytes
    status: int
    headers: Headers


def parse_request(head: bytes, most_bytes: int) -> ParsedRequest:
    """Parse a head including its empty line. Raises BadMessage.

    `most_bytes` also limits the number of fields, by HTTP/2's size accounting.
    """
    if head.count(b"\r\n") > most_bytes // FIELD_OVERHEAD:
        raise MessageTooLarge("too many header fields")
    first, *lines = head.removesuffix(HEAD_END).split(b"\r\n")
    request = _REQUEST_LINE(first)
    if request is None:
        raise BadMessage("malformed request/status line")
    method, target, version = request.groups()
    headers = [parse_field(line) for line in lines]
    if version == b"1.1" and sum(name == b"host" for name, _ in headers) != 1:
        raise BadMessage("malformed header field")
    is_chunked = any(name == b"transfer-encoding" for name, _ in headers)
    if is_chunked:
        check_codings([value for name, value in headers if name == b"transfer-encoding"], version)
    is_ambiguous = body_length(headers) is not None and is_chunked
    if is_ambiguous:
        headers = [field for field in headers if field[0] != b"content-length"]
    return ParsedRequest(method, target, version, headers, is_chunked, is_ambiguous)


def parse_response(head: bytes) -> ParsedResponse:
    """Parse a head including its empty line. Raises BadMessage."""
    first, *lines = head.removesuffix(HEAD_END).split(b"\r\n")
    status = _STATUS_LINE(first)
    if status is None:
        raise BadMessage("malformed request/status line")
    return ParsedResponse(status[1], int(status[2]), [parse_field(line) for line in lines])


def parse_field(line: bytes) -> tuple[bytes, bytes]:
    """Parse a header field. Raises BadMessage."""
    found = _FIELD(line)
    if found is None:
        raise BadMessage("malformed header field")
    return found[1].lower(), found[2].rstrip(b" \t")


def body_length(headers: Headers) -> int | None:
    """Return the Content-Length; repeated values must be equal. Raises BadMessage."""
    lengths = {value for name, value in headers if name == b"content-length"}
    if not lengths:
        return None
    length, *others = lengths
    if others or not length.isdigit() or len(length) > _MOST_DIGITS or int(length) > _GREATEST_LENGTH:
        raise BadMessage("ambiguous or conflicting message framing")
    return int(length)


def tokens(headers: Headers, name: bytes) -> Iterator[bytes]:
    """Yield the comma-separated elements of all fields of the name, in lower case."""
    for each, value in headers:
        if each == name:
            yield from (token.strip(b" \t").lower() for token in value.split(b","))


def is_persistent(headers: Headers, version: bytes) -> bool:
    """Return whether the connection persists after this message."""
    found = set(tokens(headers, b"connection"))
    return b"close" not in found and (version != b"1.0" or b"keep-alive" in found)


def refuse_bare_line_ends(head: bytearray, at: int) -> None:
    """Raise BadMessage for an empty line from `at` on that lacks CRLF, because other parsers would accept it."""
    if _BARE_LINE_END(head, max(at - 3, 0)):
        raise BadMessage("malformed request/status line")

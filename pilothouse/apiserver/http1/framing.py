"""HTTP/1.1 messages in received data: their boundaries, and a strict parser for heads of any length (RFC 9112).

The parser never gets bytes beyond the end of a message: later bytes may be an oversized head or not HTTP, and must not
be lost. Heads and chunked bodies end with an empty line, other bodies at the declared length. Lines end with CRLF,
fields are not folded, names are tokens, and values have no control characters except tabs. Body lengths must be
unambiguous. Like in net/http, chunked coding overrides Content-Length, and the connection then closes after the
response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pilothouse.apiserver.head_fields import FIELD_OVERHEAD
from pilothouse.apiserver.http import Headers
from pilothouse.machinery.dataclass import dataclass

HEAD_END: Final = b"\r\n\r\n"
_OVERHEAD: Final = 19
"""Maximum overhead per body byte for chunks of one byte; net/http's limit."""
_SPARE: Final = 16 << 10


class BadMessage(ValueError):
    """A malformed message; requests are answered with this status."""

    status = 400


class UnsupportedTransferEncoding(BadMessage):
    """A transfer coding other than chunked. Reading on would risk request smuggling."""

    status = 501


class MessageTooLarge(BadMessage):
    """The head is too long, or too expensive to parse."""

    status = 431


class Framing:
    __slots__ = ("_left", "_tail", "_taken")

    def __init__(self, length: int | None = None) -> None:
        """Start a body of this length; None = a head or a chunked body."""
        self._left = length
        self._tail = b""  # last bytes of the previous data, as the end marker may be split
        self._taken = 0  # bytes of a part that ends with an empty line

    def next_end(self, data: bytes, at: int) -> int:
        """Return the next possible end of the message, or the end of the data. Bytes before are consumed."""
        left = self._left
        if left is None:
            end = self._empty_line(data, at)
            self._taken += end - at
            return end
        size = min(left, len(data) - at)
        self._left = left - size
        return at + size

    def is_mostly_overhead(self, body_size: int) -> bool:
        """Return whether the consumed bytes far exceed the body, such as with long chunk extensions."""
        return self._taken - _OVERHEAD * body_size > _SPARE

    def _empty_line(self, data: bytes, at: int) -> int:
        tail, self._tail = self._tail, b""
        if tail and (found := (tail + data[at : at + 3]).find(HEAD_END)) >= 0:
            return at + found + len(HEAD_END) - len(tail)
        if (found := data.find(HEAD_END, at)) >= 0:
            return found + len(HEAD_END)
        self._tail = (tail + data[max(at, len(data) - 3) :])[-3:]
        return len(data)


def check_codings(values: Sequence[bytes], http_version: bytes) -> None:
    """Require a single Transfer-Encoding, chunked, like net/http. Raises BadMessage."""
    if http_version == b"1.0":
        raise BadMessage("HTTP/1.0 knows no Transfer-Encoding")
    if len(values) != 1 or values[0].lower() != b"chunked":
        raise UnsupportedTransferEncoding("unsupported transfer encoding")


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

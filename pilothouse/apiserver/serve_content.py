"""Responses with preconditions and ranges, compatible with Go's http.ServeContent.

If-Match, If-Unmodified-Since fail         → 412
If-None-Match, If-Modified-Since match     → 304
Range: bytes=0-9                           → 206 with ten bytes; several ranges are multipart
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from email.utils import formatdate, parsedate_to_datetime

from pilothouse.apiserver.http import NO_SNIFFING, Headers, Request, Response
from pilothouse.machinery.dataclass import dataclass

_READS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Content:
    """`headers` describe the bytes; `etag` is without quotation marks, "" for none."""

    body: bytes
    media_type: str
    etag: str
    modified: float
    headers: Headers

    @property
    def quoted_etag(self) -> str:
        return f'"{self.etag}"' if self.etag else ""


def serve_content(request: Request, content: Content) -> Response:
    refused = _precondition(request, content)
    if refused:
        return Response(refused, b"", _headers(content, refused))
    try:
        ranges = parse_range(_range_of(request, content), len(content.body))
    except InvalidRange as error:
        headers = [*content.headers, (b"content-type", b"text/plain; charset=utf-8"), NO_SNIFFING]
        if error.overlaps_nothing:
            headers.append((b"content-range", f"bytes */{len(content.body)}".encode()))
        return Response(416, f"{error}\n".encode(), headers)
    if not ranges:
        return Response(200, content.body, [*_headers(content, 200), (b"accept-ranges", b"bytes")])
    return _one(content, ranges[0]) if len(ranges) == 1 else _parts(content, ranges)


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether gzip is named and not excluded by `q=0`."""
    for clause in accept_encoding.lower().split(","):
        name, _, quality = (part.strip() for part in clause.partition(";"))
        if name == "gzip":
            return not re.fullmatch(r"q=0(\.0*)?", quality)
    return False


def _precondition(request: Request, content: Content) -> int:
    """Return the status of a precondition that ends the request; 0 for none."""
    if_match, if_none_match = request.header(b"if-match"), request.header(b"if-none-match")
    if if_match:
        if not _has_tag(if_match, content.quoted_etag, weak=False):
            return 412
    elif _is_before(content.modified, request.header(b"if-unmodified-since")) is False:
        return 412
    if if_none_match:
        known = _has_tag(if_none_match, content.quoted_etag, weak=True)
        return (304 if request.method in _READS else 412) if known else 0
    since = request.header(b"if-modified-since") if request.method in _READS else ""
    return 304 if _is_before(content.modified, since) else 0


def _range_of(request: Request, content: Content) -> str:
    """Return the Range header; "" if it depends on another version of the content."""
    wanted, condition = request.header(b"range"), request.header(b"if-range")
    if not wanted or not condition or request.method not in _READS:
        return wanted
    if condition.startswith(('"', "W/")):
        return wanted if condition == content.quoted_etag else ""
    return wanted if condition == formatdate(content.modified, usegmt=True) else ""


def _has_tag(header: str, etag: str, *, weak: bool) -> bool:
    tags = (tag.strip() for tag in header.split(","))
    return any(tag == "*" or (etag and (tag.removeprefix("W/") if weak else tag) == etag) for tag in tags)


def _is_before(modified: float, date: str) -> bool | None:
    """Return whether the content is not newer than the date; None for an invalid date. Dates have whole seconds."""
    try:
        return int(modified) <= parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None


def _headers(content: Content, status: int) -> Headers:
    out = [*content.headers]
    if content.etag:
        out.append((b"etag", content.quoted_etag.encode()))
    if status != 304 or not content.etag:
        out.append((b"last-modified", formatdate(content.modified, usegmt=True).encode()))
    if status == 200 or (content.etag and status == 412):
        out.append((b"content-type", content.media_type.encode()))
    return out


def _one(content: Content, wanted: ByteRange) -> Response:
    headers = [*_headers(content, 200), (b"accept-ranges", b"bytes")]
    headers.append((b"content-range", wanted.header(len(content.body)).encode()))
    return Response(206, wanted.of(content.body), headers)


def _parts(content: Content, ranges: list[ByteRange]) -> Response:
    boundary, size = secrets.token_hex(30), len(content.body)
    parts = [
        f"--{boundary}\r\nContent-Range: {each.header(size)}\r\nContent-Type: {content.media_type}\r\n\r\n".encode()
        + each.of(content.body)
        + b"\r\n"
        for each in ranges
    ]
    headers = [header for header in _headers(content, 200) if header[0] != b"content-type"]
    headers += [(b"accept-ranges", b"bytes"), (b"content-type", f"multipart/byteranges; boundary={boundary}".encode())]
    return Response(206, b"".join(parts) + f"--{boundary}--\r\n".encode(), headers)


_MAX_RANGES = 64
"""Maximum number of ranges. With more ranges the whole content is sent: every part has a header of its own."""


class InvalidRange(ValueError):
    """The message is the response text."""

    def __init__(self, *, overlaps_nothing: bool = False) -> None:
        super().__init__("invalid range" + (": failed to overlap" if overlaps_nothing else ""))
        self.overlaps_nothing = overlaps_nothing


@dataclass(frozen=True, slots=True)
class ByteRange:
    start: int
    length: int

    def header(self, size: int) -> str:
        return f"bytes {self.start}-{self.start + self.length - 1}/{size}"

    def of(self, body: bytes) -> bytes:
        return body[self.start : self.start + self.length]


def parse_range(header: str, size: int) -> list[ByteRange]:
    """Return the ranges within `size` bytes; empty if everything is to be sent. Raises InvalidRange."""
    if not header:
        return []
    if not header.startswith("bytes="):
        raise InvalidRange
    specs = [spec.strip(" \t") for spec in header.removeprefix("bytes=").split(",", _MAX_RANGES)]
    wanted = [spec for spec in specs if spec]
    if len(specs) > _MAX_RANGES or not wanted:
        return []
    found = list(_within(wanted, size))
    if not found and size:
        raise InvalidRange(overlaps_nothing=True)
    return found if sum(each.length for each in found) <= size else []


def _within(specs: list[str], size: int) -> Iterator[ByteRange]:
    """Yield the ranges, except those after the end."""
    for spec in specs:
        first, dash, last = (part.strip(" \t") for part in spec.partition("-"))
        if not dash:
            raise InvalidRange
        if not first:
            length = min(_number(last), size)
            yield ByteRange(size - length, length)
        elif (start := _number(first)) < size:
            end = min(_number(last), size - 1) if last else size - 1
            if end < start:
                raise InvalidRange
            yield ByteRange(start, end - start + 1)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidRange
    return int(text)

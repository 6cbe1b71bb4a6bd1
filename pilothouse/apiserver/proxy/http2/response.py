"""A field list as the head of an answer: the rules of RFC 9113, section 8, for what a server may send."""

from __future__ import annotations

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.serving.http2.frames import ErrorCode, StreamFailure
from pilothouse.apiserver.serving.http2.hpack import CONNECTION_FIELDS, Field
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ResponseFields:
    status: int
    headers: Headers
    content_length: int | None


def response_fields(fields: list[Field] | None) -> ResponseFields:
    """Raises StreamFailure."""
    if not fields:
        raise _malformed("there are no header fields, or too many")
    (name, status), *headers = fields
    if name != b":status" or len(status) != 3 or not status.isdigit():
        raise _malformed("an answer does not begin with its status")
    length: int | None = None
    for name, value in headers:
        if name[0] == 58 or name in CONNECTION_FIELDS:  # 58 is a colon
            raise _malformed("a header field is out of place")
        if name == b"content-length":
            length = _content_length(value, length)
    return ResponseFields(int(status), headers, length)


def _content_length(value: bytes, known: int | None) -> int:
    if not value.isdigit() or len(value) > 18 or (known is not None and known != int(value)):
        raise _malformed("the content length is no number")
    return int(value)


def _malformed(why: str) -> StreamFailure:
    return StreamFailure(ErrorCode.PROTOCOL_ERROR, why)

"""Response heads from field lists, by the rules of RFC 9113, section 8."""

from __future__ import annotations

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http2.fields import CONNECTION_FIELDS, Field, content_length, malformed
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ResponseFields:
    status: int
    headers: Headers
    content_length: int | None


def response_fields(fields: list[Field] | None) -> ResponseFields:
    """Validate the fields. Raises StreamFailure."""
    if not fields:
        raise malformed("there are no header fields, or too many")
    (name, status), *headers = fields
    if name != b":status" or len(status) != 3 or not status.isdigit():
        raise malformed("an answer does not begin with its status")
    length: int | None = None
    for name, value in headers:
        if name[0] == 58 or name in CONNECTION_FIELDS:  # 58 is a colon
            raise malformed("a header field is out of place")
        if name == b"content-length":
            length = content_length(value, length)
    return ResponseFields(int(status), headers, length)

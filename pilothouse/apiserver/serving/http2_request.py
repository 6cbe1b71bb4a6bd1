"""Requests from field lists, by the rules of RFC 9113, section 8."""

from __future__ import annotations

from typing import Final

from pilothouse.apiserver.http import Headers
from pilothouse.apiserver.http2.fields import CONNECTION_FIELDS, Field, content_length, malformed
from pilothouse.machinery.dataclass import dataclass

_PSEUDO: Final = frozenset({b":method", b":scheme", b":path", b":authority"})


@dataclass(frozen=True, slots=True)
class RequestFields:
    method: bytes
    target: bytes
    headers: Headers
    content_length: int | None


def request_fields(fields: list[Field]) -> RequestFields:
    """Return the request line and headers; `host` comes first, taken from :authority if present.

    Raises StreamFailure.
    """
    pseudo: dict[bytes, bytes] = {}
    headers: Headers = []
    length: int | None = None
    for field in fields:
        name = field[0]
        if name[0] == 58:  # a colon
            if headers or name in pseudo or name not in _PSEUDO:
                raise malformed("a pseudo-header is out of place")
            pseudo[name] = field[1]
        else:
            if name in CONNECTION_FIELDS or (name == b"te" and field[1] != b"trailers"):
                raise malformed("a header speaks of the connection")
            if name == b"content-length":
                length = content_length(field[1], length)
            headers.append(field)
    method, target = pseudo.get(b":method"), pseudo.get(b":path")
    if not method or not target or b":scheme" not in pseudo:
        raise malformed("a pseudo-header is missing")
    if authority := pseudo.get(b":authority"):
        headers = [(b"host", authority), *(field for field in headers if field[0] != b"host")]
    return RequestFields(method, target, headers, length)

"""Field list rules of RFC 9113, section 8, for requests and responses."""

from __future__ import annotations

from typing import Final, TypeAlias

from pilothouse.apiserver.http2.frames import ErrorCode, StreamFailure

Field: TypeAlias = tuple[bytes, bytes]

CONNECTION_FIELDS: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Connection-specific fields, forbidden in HTTP/2."""


def malformed(why: str) -> StreamFailure:
    return StreamFailure(ErrorCode.PROTOCOL_ERROR, why)


def content_length(value: bytes, known: int | None) -> int:
    """Parse a length. Raises StreamFailure for an invalid length, or a conflict with `known`."""
    if not value.isdigit() or len(value) > 18 or (known is not None and known != int(value)):
        raise malformed("the content length is no number")
    return int(value)


def check_complete(missing: int | None) -> None:
    """Raise StreamFailure if the body length differs from the declared length."""
    if missing:
        raise malformed("the body is not as long as was declared")


def check_trailers(fields: list[Field]) -> None:
    """Raise StreamFailure for pseudo-headers in trailers."""
    if any(name[0] == 58 for name, _ in fields):  # a colon
        raise malformed("a trailer is a pseudo-header")

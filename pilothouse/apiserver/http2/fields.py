"""Field lists: the rules of RFC 9113, section 8, that hold for requests and for answers."""

from __future__ import annotations

from typing import Final, TypeAlias

from pilothouse.apiserver.http2.frames import ErrorCode, StreamFailure

Field: TypeAlias = tuple[bytes, bytes]

CONNECTION_FIELDS: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
"""Fields that speak of a connection: they mean nothing in HTTP/2 and must not be sent."""


def malformed(why: str) -> StreamFailure:
    return StreamFailure(ErrorCode.PROTOCOL_ERROR, why)


def content_length(value: bytes, known: int | None) -> int:
    """Raises StreamFailure for what is no length, or another than was `known`."""
    if not value.isdigit() or len(value) > 18 or (known is not None and known != int(value)):
        raise malformed("the content length is no number")
    return int(value)


def check_complete(missing: int | None) -> None:
    """Raises StreamFailure where a body ends and something of its declared length is `missing`, or it was longer."""
    if missing:
        raise malformed("the body is not as long as was declared")


def check_trailers(fields: list[Field]) -> None:
    """Raises StreamFailure."""
    if any(name[0] == 58 for name, _ in fields):  # a colon
        raise malformed("a trailer is a pseudo-header")

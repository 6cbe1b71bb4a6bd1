"""Audit id: every request has one, the client's own where it sent one, and every answer carries it."""

from __future__ import annotations

from random import getrandbits

from pilothouse.apiserver.http import Handler, Request, Response

_MAX_LENGTH = 64


def with_audit_id(handler: Handler) -> Handler:
    async def identify(request: Request) -> Response:
        request.audit_id = request.header(b"audit-id")[:_MAX_LENGTH] or _new_id()
        response = await handler(request)
        return response.with_header(b"audit-id", request.audit_id.encode("latin-1"))

    return identify


def _new_id() -> str:
    """A random (version 4) UUID. It only has to differ from others, so the cheap source of randomness will do."""
    digits = f"{getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

"""Audit id: every request has one, the client's own where it sent one, and every answer carries it."""

from __future__ import annotations

from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.metadata import new_uid

_MAX_LENGTH = 64


def with_audit_id(handler: Handler) -> Handler:
    async def identify(request: Request) -> Response:
        request.audit_id = request.header(b"audit-id")[:_MAX_LENGTH] or new_uid()
        response = await handler(request)
        return response.with_header(b"audit-id", request.audit_id.encode("latin-1"))

    return identify

"""Panic recovery: log unexpected errors and respond with 500."""

from __future__ import annotations

import logging

from pilothouse.apiserver.http import Handler, Request, Response, text

_log = logging.getLogger(__name__)


def with_panic_recovery(handler: Handler) -> Handler:
    async def recover(request: Request) -> Response:
        try:
            return await handler(request)
        except Exception:
            _log.exception("apiserver panic'd on %s %s (audit-ID %s)", request.method, request.path, request.audit_id)
            message = (
                f"This request caused apiserver to panic. Look in the logs for details. (audit-id {request.audit_id})"
            )
            return text(500, message)

    return recover

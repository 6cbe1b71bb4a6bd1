"""Errors of filters, which upstream reports as plain text."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import sanitized
from pilothouse.apiserver.http import Request, Response, text
from pilothouse.machinery.gofmt import quote


def internal_error(request: Request, reason: str) -> Response:
    message = sanitized(f"Internal Server Error: {quote(asked_url(request))}: {reason}")
    return text(500, f"{message}\n", x_content_type_options="nosniff")


def asked_url(request: Request) -> str:
    return f"{request.path}?{request.query_string}" if request.query_string else request.path

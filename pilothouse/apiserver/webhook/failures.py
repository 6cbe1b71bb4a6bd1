"""Errors of webhook calls, with client-go's messages, which users search for."""

from __future__ import annotations

from pilothouse.machinery.errors_by_reason import from_status, status_in
from pilothouse.machinery.server_errors import generic_response
from pilothouse.machinery.status_error import StatusError

_MAX_TEXT = 2048
_UNEXPECTED = "UnexpectedServerResponse"


class WebhookCallFailed(Exception):
    """The call failed; `status` is set if the webhook returned an error response."""

    def __init__(self, text: str, *, status: StatusError | None = None) -> None:
        super().__init__(text)
        self.status = status


class NoClient(WebhookCallFailed):
    """The call was not made because the configuration is invalid."""


def refused(code: int, content_type: str, body: bytes) -> WebhookCallFailed:
    """Build the error of an error response from its Status, or from the HTTP code."""
    status = status_in(body)
    is_failure = status is not None and status.get("status") == "Failure"
    error = from_status(status, http_code=code) if status and is_failure else _generic(code, content_type, body)
    return WebhookCallFailed(error.message, status=error)


def _generic(code: int, content_type: str, body: bytes) -> StatusError:
    is_text = not content_type or content_type.startswith("text/")
    text = body[:_MAX_TEXT].decode("utf-8", "replace").strip() if is_text else "unknown"
    response = generic_response(code, text, method="POST")
    details = {"causes": [{"reason": _UNEXPECTED, "message": text}]}
    return from_status({"reason": response.reason, "message": response.message, "code": code, "details": details})

"""The errors of webhooks that answer without success, in the words of client-go: people search for them."""

from __future__ import annotations

from pilothouse.machinery.errors_by_reason import from_status, status_in
from pilothouse.machinery.server_errors import generic_response
from pilothouse.machinery.status_error import StatusError

_MAX_TEXT = 2048
_UNEXPECTED = "UnexpectedServerResponse"


class WebhookCallFailed(Exception):
    """`status` is there when the webhook answered, but with no success."""

    def __init__(self, text: str, *, status: StatusError | None = None) -> None:
        super().__init__(text)
        self.status = status


class NoClient(WebhookCallFailed):
    """It was not even asked: what its configuration says can not be used."""


def refused(code: int, content_type: str, body: bytes) -> WebhookCallFailed:
    """For an answer that is no success: the Status in it, or one made from the HTTP code."""
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

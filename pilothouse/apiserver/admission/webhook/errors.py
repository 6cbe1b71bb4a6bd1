"""Errors of webhook calls that reject a write."""

from __future__ import annotations

from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError


class CallingWebhookFailed(Exception):
    """The webhook call failed, or its response is invalid. `code` is the metric label."""

    def __init__(self, webhook: str, reason: str, *, code: int = 503, answered: int = 0) -> None:
        """Build the error; `answered` is the status of a response whose text is in `reason`."""
        super().__init__(f"failed calling webhook {quote(webhook)}: {reason}")
        self.code = code
        self.logged = f"failed calling webhook {quote(webhook)}: status code {answered}" if answered else str(self)
        """Message for logs without response content, which may come from any server (CVE-2020-8561)."""


class WebhookRejection(Exception):
    """The webhook denied the request."""

    def __init__(self, webhook: str, result: Json | None) -> None:
        self.status = denied(webhook, result)
        super().__init__(self.status.message)


def denied(webhook: str, result: Json | None) -> StatusError:
    """Build the webhook's Status: its message after upstream's prefix, with an error code."""
    result = result or {}
    by = f"admission webhook {quote(webhook)} denied the request"
    why = result.get("message") or result.get("reason")
    message = f"{by}: {why}" if why else f"{by} without explanation"
    code = max(int(result.get("code") or 0), 400)
    return from_status({**result, "message": message, "code": code})


def dry_run_unsupported(webhook: str) -> BadRequest:
    return BadRequest(f"admission webhook {quote(webhook)} does not support dry run")

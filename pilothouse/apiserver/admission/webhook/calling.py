"""A webhook call: sends the review, verifies the response, and observes metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.metrics import WEBHOOK, WEBHOOK_REJECTIONS, WEBHOOK_REQUESTS
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook
from pilothouse.apiserver.admission.webhook.response import (
    AdmissionResponse,
    AdmissionReview,
    InvalidWebhookResponse,
    UndecodableResponse,
    new_review,
    read_response,
)
from pilothouse.apiserver.external_latency import webhook_took
from pilothouse.apiserver.tracing.spans import SpanAttributes, event, spanned
from pilothouse.apiserver.webhook.endpoint import NoClient, WebhookCallFailed
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.errors_by_reason import from_status
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import Timeout
from pilothouse.machinery.status_error import StatusError

_NO_VERSION = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"


class WebhookClient(Protocol):
    async def post(self, config: Json, body: Json, *, timeout: float) -> Json:
        """Post the review. Raises WebhookCallFailed."""


async def call(
    client: WebhookClient, hook: AdmissionWebhook, seen: VersionedAttributes, *, mutating: bool
) -> AdmissionResponse:
    """Return the response of a webhook that allowed the write.

    Audit annotations and warnings are always passed on. Raises CallingWebhookFailed, WebhookRejection, Timeout after
    the request's deadline, and BadRequest for a dry run of a webhook with side effects.
    """
    attributes = seen.attributes
    if attributes.dry_run and not hook.can_dry_run:
        raise dry_run_unsupported(hook.name)
    review = new_review(seen, hook.review_versions)
    if review is None:
        raise CallingWebhookFailed(hook.name, _NO_VERSION, code=400)
    left = max(attributes.deadline - time.monotonic(), 0)
    try:
        ask = _ask_mutating if mutating else _ask_validating
        response = await ask(client, hook, review, timeout=min(hook.timeout, left), mutating=mutating)
    except CallingWebhookFailed:
        if time.monotonic() >= attributes.deadline:
            raise Timeout.of("request did not complete within requested timeout", 0) from None
        raise
    for key, value in response.audit_annotations.items():
        attributes.annotate(f"{hook.name}/{key}", value)
    for warning in response.warnings:
        attributes.warn(warning)
    if not response.allowed:
        raise WebhookRejection(hook.name, response.result)
    return response


async def _ask(
    client: WebhookClient, hook: AdmissionWebhook, review: AdmissionReview, *, timeout: float, mutating: bool
) -> AdmissionResponse:
    try:
        answer = await client.post(hook.client_config, review.body, timeout=timeout)
        event("Request completed")
        return read_response(review, answer, mutating=mutating)
    except NoClient as error:
        raise CallingWebhookFailed(hook.name, f"could not get REST client: {error}", code=500) from None
    except WebhookCallFailed as error:
        answered = error.status.code if error.status else 0
        reason = f"failed to call webhook: {error}"
        raise CallingWebhookFailed(hook.name, reason, code=answered or 503, answered=answered) from None
    except UndecodableResponse as error:
        raise CallingWebhookFailed(hook.name, f"failed to call webhook: {error}") from None
    except InvalidWebhookResponse as error:
        raise CallingWebhookFailed(hook.name, f"received invalid webhook response: {error}") from None


def _of_call(client: WebhookClient, hook: AdmissionWebhook, review: AdmissionReview, **_: object) -> SpanAttributes:
    asked = review.body["request"]
    resource = asked["resource"]
    return {
        "configuration": hook.configuration,
        "webhook": hook.name,
        "resource": f"{resource['group']}/{resource['version']}, Resource={resource['resource']}",
        "subresource": asked.get("subResource", ""),
        "operation": asked["operation"],
        "UID": review.uid,
    }


_ask_mutating = spanned("Call mutating webhook", _of_call)(_ask)
_ask_validating = spanned("Call validating webhook", _of_call)(_ask)


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
    reason = result.get("message") or result.get("reason")
    message = f"{by}: {reason}" if reason else f"{by} without explanation"
    code = max(int(result.get("code") or 0), 400)
    return from_status({**result, "message": message, "code": code})


def dry_run_unsupported(webhook: str) -> BadRequest:
    return BadRequest(f"admission webhook {quote(webhook)} does not support dry run")


_MUTATING = "admit"
_MOST = 600
"""Cap of the status code label: webhooks may return arbitrary codes."""


@contextmanager
def observed(hook: AdmissionWebhook, type: str, attributes: Attributes) -> Iterator[None]:
    """Observe a webhook call; exceptions propagate."""
    start = time.perf_counter()
    code, error_type, rejected = 0, "", True
    try:
        yield
        code, rejected = 200, False
    except CallingWebhookFailed as error:
        code, error_type, rejected = error.code, "calling_webhook_error", not hook.fails_open
        raise
    except WebhookRejection as error:
        code, error_type = error.status.code, "no_error"
        raise
    except Exception:
        error_type = "apiserver_internal_error"
        raise
    finally:
        operation, shown, refused = attributes.operation.value, str(min(code, _MOST)), str(rejected).lower()
        if rejected and error_type:
            WEBHOOK_REJECTIONS.inc((hook.name, type, operation, error_type, shown))
        WEBHOOK_REQUESTS.inc((hook.name, type, operation, shown, refused))
        taken = time.perf_counter() - start
        webhook_took(taken, mutating=type == _MUTATING)
        WEBHOOK.observe((hook.name, type, operation, refused), taken)

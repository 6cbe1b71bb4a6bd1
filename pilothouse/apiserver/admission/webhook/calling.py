"""A webhook call: sends the review and verifies the response."""

from __future__ import annotations

import time
from typing import Protocol

from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.admission.webhook.errors import (
    CallingWebhookFailed,
    WebhookRejection,
    dry_run_unsupported,
)
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook
from pilothouse.apiserver.admission.webhook.response import (
    AdmissionResponse,
    InvalidWebhookResponse,
    UndecodableResponse,
    read_response,
)
from pilothouse.apiserver.admission.webhook.review import AdmissionReview, new_review
from pilothouse.apiserver.tracing.spans import Attributes, event, spanned
from pilothouse.apiserver.webhook.failures import NoClient, WebhookCallFailed
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import Timeout

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


def _of_call(client: WebhookClient, hook: AdmissionWebhook, review: AdmissionReview, **_: object) -> Attributes:
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

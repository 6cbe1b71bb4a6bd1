"""Metrics of webhook calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.metrics import WEBHOOK, WEBHOOK_REJECTIONS, WEBHOOK_REQUESTS
from pilothouse.apiserver.admission.webhook.errors import CallingWebhookFailed, WebhookRejection
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook
from pilothouse.apiserver.external_latency import webhook_took

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

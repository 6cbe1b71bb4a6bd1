"""ValidatingAdmissionWebhook: calls matching webhooks concurrently, and rejects if any webhook rejects."""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.metrics import WEBHOOK_FAIL_OPEN
from pilothouse.apiserver.admission.versioned import VersionedAttributes, versioned
from pilothouse.apiserver.admission.webhook.calling import CallingWebhookFailed, WebhookRejection, call, observed
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook
from pilothouse.apiserver.admission.webhook.plugin import WebhookPlugin
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError

_TYPE = "validating"
_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/round_0_index_{}"
_log = logging.getLogger(__name__)


class ValidatingAdmissionWebhook(WebhookPlugin):
    name = "ValidatingAdmissionWebhook"

    async def validate(self, attributes: Attributes) -> None:
        hooks = await self.webhooks(attributes)
        if not hooks:
            return
        concerned = []
        for hook in hooks:
            match = await self.match(hook, attributes, _TYPE)
            if match is not None:
                concerned.append((hook, await versioned(attributes, match)))
        refusals = await asyncio.gather(
            *(self._refusal(hook, seen, index) for index, (hook, seen) in enumerate(concerned))
        )
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    async def _refusal(self, hook: AdmissionWebhook, seen: VersionedAttributes, index: int) -> StatusError | None:
        try:
            with observed(hook, _TYPE, seen.attributes):
                await call(self.client, hook, seen, mutating=False)
        except CallingWebhookFailed as error:
            if not hook.fails_open:
                return InternalError.of(str(error))
            _log.warning("failing open: %s", error.logged)
            WEBHOOK_FAIL_OPEN.inc((hook.name, _TYPE))
            seen.attributes.annotate(_FAILED_OPEN.format(index), hook.name)
        except WebhookRejection as error:
            return error.status
        except StatusError as error:
            return error
        except Exception as error:  # wait for all calls, so that no call outlives the request
            _log.exception("calling webhook %s", hook.name)
            return InternalError.of(f"ValidatingAdmissionWebhook/{hook.name} has panicked: {error}")
        return None

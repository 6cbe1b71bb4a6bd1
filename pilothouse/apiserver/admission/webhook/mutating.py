"""MutatingAdmissionWebhook: calls matching webhooks sequentially; each sees the changes of its predecessors."""

from __future__ import annotations

import logging
from typing import Any

import orjson

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.matching import Match
from pilothouse.apiserver.admission.metrics import WEBHOOK_FAIL_OPEN
from pilothouse.apiserver.admission.previously_invoked import PreviouslyInvoked
from pilothouse.apiserver.admission.versioned import VersionedAttributes, admit_change, versioned
from pilothouse.apiserver.admission.webhook.calling import CallingWebhookFailed, WebhookRejection, call, observed
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook
from pilothouse.apiserver.admission.webhook.plugin import WebhookPlugin
from pilothouse.apiserver.admission.webhook.response import AdmissionResponse
from pilothouse.apiserver.audit.annotations import REQUEST
from pilothouse.machinery.codec.json import JsonError, canonical_json, parse_printed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.server_errors import InternalError

_TYPE = "admit"
_ANNOTATION = "mutation.webhook.admission.k8s.io/"
_PATCH_ANNOTATION = "patch.webhook.admission.k8s.io/"
_log = logging.getLogger(__name__)


class MutatingAdmissionWebhook(WebhookPlugin):
    name = "MutatingAdmissionWebhook"

    async def admit(self, attributes: Attributes) -> None:
        hooks = await self.webhooks(attributes)
        if not hooks:
            return
        round = attributes.reinvocation
        state = round.value(self.name, PreviouslyInvoked)
        if round.is_reinvoke:
            state.notice_other_changes(attributes.obj)
        for index, hook in enumerate(hooks):
            match = await self.match(hook, attributes, _TYPE)
            # Webhooks without a call in the first round are not called in the second.
            if match is None or (round.is_reinvoke and not state.is_due(hook.uid)):
                continue
            if await self._call(hook, attributes, match, index):
                state.changed()
                round.should_reinvoke = True
            if hook.reinvocable:
                state.called(hook.uid)
        state.leave(attributes.obj)

    async def _call(self, hook: AdmissionWebhook, attributes: Attributes, match: Match, index: int) -> bool:
        """Call the webhook, and return whether the object changed. Raises StatusError."""
        turn = f"round_{int(attributes.reinvocation.is_reinvoke)}_index_{index}"
        patched = None
        try:
            with observed(hook, _TYPE, attributes):
                seen = await versioned(attributes, match)
                response = await call(self.client, hook, seen, mutating=True)
                patched = await apply_patch(hook, seen, response) if response.patch else None
        except CallingWebhookFailed as error:
            if not hook.fails_open:
                raise InternalError.of(str(error)) from None
            _log.warning("failing open: %s", error.logged)
            WEBHOOK_FAIL_OPEN.inc((hook.name, _TYPE))
            attributes.annotate(f"failed-open.{_ANNOTATION}{turn}", hook.name)
        except WebhookRejection as error:
            raise error.status from None
        finally:
            # The annotation of the patch requires level Request.
            source = {"configuration": hook.configuration, "webhook": hook.name}
            mutated = {**source, "mutated": patched is not None and patched.changed}
            attributes.annotate(f"{_ANNOTATION}{turn}", orjson.dumps(mutated).decode())
            if patched is not None:
                patch = {**source, "patch": patched.patch, "patchType": "JSONPatch"}
                attributes.annotate(f"{_PATCH_ANNOTATION}{turn}", orjson.dumps(patch).decode(), REQUEST)
        return patched is not None and patched.changed


_UNDECODABLE = "received undecodable patch in webhook response: "


@dataclass(frozen=True, slots=True)
class Patched:
    changed: bool
    patch: Any
    """The patch as sent by the webhook."""


async def apply_patch(hook: AdmissionWebhook, seen: VersionedAttributes, response: AdmissionResponse) -> Patched | None:
    """Apply the patch; None for an empty patch. Raises CallingWebhookFailed for a malformed patch, and InternalError if
    the patch does not apply."""
    # Deferred until the first patch.
    from pilothouse.machinery.patch import json_patch
    from pilothouse.machinery.patch.interface import PatchDoesNotApply, PatchError

    try:
        steps = parse_printed(response.patch).value
        patch = json_patch.decode(steps, strict=False)
    except (JsonError, PatchError) as error:
        raise CallingWebhookFailed(hook.name, f"{_UNDECODABLE}{error}") from None
    if not patch.operations:
        return None
    if seen.obj is None:
        reason = "attempted to modify the object, which is not supported for this operation"
        raise InternalError.of(f"admission webhook {quote(hook.name)} {reason}")
    if response.patch_type != "JSONPatch":
        raise CallingWebhookFailed(hook.name, f"unsupported patch type {quote(response.patch_type)}", code=400)
    before = canonical_json(seen.obj)
    try:
        new = patch.apply(orjson.loads(orjson.dumps(seen.obj)))
    except PatchDoesNotApply as error:
        raise InternalError.of(str(error)) from None
    after = await admit_change(seen, new)
    return Patched(canonical_json(after.obj) != before, steps)

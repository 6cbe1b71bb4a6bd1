"""Application of the patch in a webhook response."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.apiserver.admission.versioned import VersionedAttributes, admit_change
from pilothouse.apiserver.admission.webhook.errors import CallingWebhookFailed
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook
from pilothouse.apiserver.admission.webhook.response import AdmissionResponse
from pilothouse.machinery.codec.json import JsonError, canonical_json, parse_printed
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.patch import json_patch
from pilothouse.machinery.patch.interface import PatchDoesNotApply, PatchError
from pilothouse.machinery.server_errors import InternalError

_UNDECODABLE = "received undecodable patch in webhook response: "


@dataclass(frozen=True, slots=True)
class Patched:
    changed: bool
    patch: Any
    """The patch as sent by the webhook."""


async def apply_patch(hook: AdmissionWebhook, seen: VersionedAttributes, response: AdmissionResponse) -> Patched | None:
    """Apply the patch; None for an empty patch. Raises CallingWebhookFailed for a malformed patch, and InternalError if
    the patch does not apply."""
    try:
        steps = parse_printed(response.patch).value
        patch = json_patch.decode(steps, strict=False)
    except (JsonError, PatchError) as error:
        raise CallingWebhookFailed(hook.name, f"{_UNDECODABLE}{error}") from None
    if not patch.operations:
        return None
    if seen.obj is None:
        why = "attempted to modify the object, which is not supported for this operation"
        raise InternalError.of(f"admission webhook {quote(hook.name)} {why}")
    if response.patch_type != "JSONPatch":
        raise CallingWebhookFailed(hook.name, f"unsupported patch type {quote(response.patch_type)}", code=400)
    before = canonical_json(seen.obj)
    try:
        new = patch.apply(orjson.loads(orjson.dumps(seen.obj)))
    except PatchDoesNotApply as error:
        raise InternalError.of(str(error)) from None
    after = await admit_change(seen, new)
    return Patched(canonical_json(after.obj) != before, steps)

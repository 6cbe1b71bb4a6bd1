"""AdmissionReview: the request to a webhook, and the validation of its response."""

from __future__ import annotations

import base64
from dataclasses import field
from typing import Any
from uuid import uuid4

from pilothouse.apiserver.admission.versioned import VersionedAttributes, admission_request
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import json_type, quote
from pilothouse.machinery.names import GroupVersion, GroupVersionKind, not_registered
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.scalars import base64_fault, illegal_base64

GROUP, KIND = "admission.k8s.io", "AdmissionReview"
VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class AdmissionReview:
    uid: str
    version: str
    body: Json


def new_review(seen: VersionedAttributes, versions: tuple[str, ...]) -> AdmissionReview | None:
    """Build the review in the first supported version, or None without a supported version."""
    for version in versions:
        if version in VERSIONS:
            uid = str(uuid4())
            body = {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": _request(uid, seen)}
            return AdmissionReview(uid, version, body)
    return None


def _request(uid: str, seen: VersionedAttributes) -> Json:
    """Build the request; keys and their order are identical in all versions."""
    request = admission_request(seen.attributes, seen.match.kind, seen.match.resource)
    return request | {"uid": uid, "object": seen.obj, "oldObject": seen.old}


_FIELDS: dict[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "{version}.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}
_RESULT: dict[str, tuple[type, str]] = {
    "status": (str, "string"),
    "message": (str, "string"),
    "reason": (str, "v1.StatusReason"),
    "details": (dict, "v1.StatusDetails"),
    "code": (int, "int32"),
}


class UndecodableResponse(ValueError):
    """The response is not an AdmissionReview; the text is Go's."""


class InvalidWebhookResponse(ValueError):
    """The AdmissionReview violates the contract."""


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    result: Json | None = None
    audit_annotations: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_response(asked: AdmissionReview, answer: Json, *, mutating: bool) -> AdmissionResponse:
    """Decode and verify the response. Raises UndecodableResponse or InvalidWebhookResponse."""
    kind = _kind_of(answer)
    _check_kind(kind, asked.version)
    response = answer.get("response")
    if response is None:
        raise InvalidWebhookResponse("webhook response was absent")
    _check_types(response, asked.version)
    text = response.get("patch") or ""
    fault = base64_fault(text)
    if fault is not None:
        raise UndecodableResponse(illegal_base64(fault))
    patch = base64.b64decode(text)
    if asked.version == "v1":
        _verify(asked, kind, response, patch, mutating=mutating)
    # v1beta1 responses were never validated, and support JSONPatch only.
    patch_type = response.get("patchType") or "" if asked.version == "v1" else "JSONPatch"
    return AdmissionResponse(
        allowed=bool(response.get("allowed")),
        patch=patch if mutating else b"",
        patch_type=patch_type if mutating and patch else "",
        result=response.get("status"),
        audit_annotations=response.get("auditAnnotations") or {},
        warnings=tuple(response.get("warnings") or ()),
    )


def _kind_of(answer: Json) -> GroupVersionKind:
    try:
        return GroupVersion.parse(str(answer.get("apiVersion") or "")).kind(str(answer.get("kind") or ""))
    except ValueError as error:
        raise UndecodableResponse(str(error)) from None


def _check_kind(kind: GroupVersionKind, version: str) -> None:
    """Raise UndecodableResponse for a different kind. Missing parts pass here; the v1 checks reject them later."""
    group, found, name = kind.group or GROUP, kind.version or version, kind.kind or KIND
    if (group, name) != (GROUP, KIND) or found not in VERSIONS:
        raise UndecodableResponse(not_registered(name, f"{group}/{found}"))
    if found != version:
        reason = f"converting ({found}.{KIND}) to ({version}.{KIND}): unknown conversion"
        raise UndecodableResponse(reason)


def _verify(asked: AdmissionReview, kind: GroupVersionKind, response: Json, patch: bytes, *, mutating: bool) -> None:
    if (response.get("uid") or "") != asked.uid:
        raise InvalidWebhookResponse(
            f"expected response.uid={quote(asked.uid)}, got {quote(response.get('uid') or '')}"
        )
    expected = GroupVersionKind(GROUP, asked.version, KIND)
    if kind != expected:
        raise InvalidWebhookResponse(
            f"expected webhook response of {expected}, got {(f'{kind.group}/{kind.version}, Kind={kind.kind}')}"
        )
    patch_type = response.get("patchType")
    if not mutating:
        if patch:
            raise InvalidWebhookResponse("validating webhook may not return response.patch")
        if patch_type is not None:
            raise InvalidWebhookResponse("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise InvalidWebhookResponse("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise InvalidWebhookResponse("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise InvalidWebhookResponse('webhook returned invalid response.patchType of ""')


def _check_types(response: Any, version: str) -> None:
    if not isinstance(response, dict):
        raise _mismatch(response, "AdmissionReview.response", f"{version}.AdmissionResponse")
    _check_fields(response, _FIELDS, "AdmissionResponse.response", version)
    if response.get("status"):
        _check_fields(response["status"], _RESULT, "Status.response.status", version)
    for value in (response.get("auditAnnotations") or {}).values():
        if value is not None and not isinstance(value, str):
            raise _mismatch(value, "AdmissionResponse.response.auditAnnotations", "string")
    for value in response.get("warnings") or ():
        if value is not None and not isinstance(value, str):
            raise _mismatch(value, "AdmissionResponse.response.warnings", "string")


def _check_fields(value: Json, fields: dict[str, tuple[type, str]], path: str, version: str) -> None:
    for name, (wanted, go_type) in fields.items():
        found = value.get(name)
        if found is not None and type(found) is not wanted:
            raise _mismatch(found, f"{path}.{name}", go_type.format(version=version))


def _mismatch(value: Any, path: str, go_type: str) -> UndecodableResponse:
    return UndecodableResponse(
        f"json: cannot unmarshal {json_type(value)} into Go struct field {path} of type {go_type}"
    )

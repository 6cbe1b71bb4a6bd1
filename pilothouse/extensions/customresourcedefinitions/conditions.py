"""Condition types of CustomResourceDefinitions, and the fields that decide on them: approval annotation and CA
bundle."""

from __future__ import annotations

from enum import Enum

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.validation.webhook_clients import InvalidUrl, parse_url

ESTABLISHED = "Established"
NAMES_ACCEPTED = "NamesAccepted"
TERMINATING = "Terminating"
NON_STRUCTURAL_SCHEMA = "NonStructuralSchema"
API_APPROVED = "KubernetesAPIApprovalPolicyConformant"


APPROVED_ANNOTATION = "api-approved.kubernetes.io"

_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_MUST = f"protected groups must have approval annotation {quote(APPROVED_ANNOTATION)}"


class ApprovalState(Enum):
    INVALID = "InvalidAnnotation"
    APPROVED = "ApprovedAnnotation"
    BYPASSED = "UnapprovedAnnotation"
    MISSING = "MissingAnnotation"


@dataclass(frozen=True, slots=True)
class Approval:
    state: ApprovalState
    reason: str


def is_protected_group(group: str) -> bool:
    return f".{group}".endswith((".k8s.io", ".kubernetes.io"))


def approval_of(definition: Json) -> Approval:
    annotation = annotations_of(definition).get(APPROVED_ANNOTATION) or ""
    if not annotation:
        return Approval(ApprovalState.MISSING, f"{_MUST}, {_SEE}")
    if annotation.startswith("unapproved"):
        return Approval(ApprovalState.BYPASSED, f"not approved: {quote(annotation)}")
    if _is_url(annotation):
        return Approval(ApprovalState.APPROVED, f"approved in {annotation}")
    reason = f'{_MUST} with either a URL or a reason starting with "unapproved", {_SEE}'
    return Approval(ApprovalState.INVALID, reason)


def _is_url(text: str) -> bool:
    try:
        url = parse_url(text)
    except InvalidUrl:
        return False
    return bool(url.host and url.scheme)


def ca_bundle_of(spec: Json) -> str:
    """Return the base64-encoded CA bundle of the conversion webhook; "" without a webhook or bundle."""
    webhook = (spec.get("conversion") or {}).get("webhook") or {}
    return (webhook.get("clientConfig") or {}).get("caBundle") or ""

"""AdmissionReview requests."""

from __future__ import annotations

from uuid import uuid4

from pilothouse.apiserver.admission.request import admission_request
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

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

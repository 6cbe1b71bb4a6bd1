"""AdmissionReview: the question that a webhook is asked."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.authn.user import User
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

GROUP, KIND = "admission.k8s.io", "AdmissionReview"
VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class AdmissionReview:
    uid: str
    version: str
    body: Json


def new_review(seen: VersionedAttributes, versions: tuple[str, ...]) -> AdmissionReview | None:
    """In the first of the versions that this server speaks; None where it speaks none of them."""
    for version in versions:
        if version in VERSIONS:
            uid = str(uuid4())
            body = {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": _request(uid, seen)}
            return AdmissionReview(uid, version, body)
    return None


def _request(uid: str, seen: VersionedAttributes) -> Json:
    """Keys and their order are the same in all versions."""
    asked, match = seen.attributes, seen.match
    parts: Json = {
        "uid": uid,
        "kind": _kind(match.kind),
        "resource": _resource(match.resource),
        "subResource": asked.subresource,
        "requestKind": _kind(asked.kind),
        "requestResource": _resource(asked.resource),
        "requestSubResource": asked.subresource,
        "name": asked.name,
        "namespace": asked.namespace,
    }
    return {key: value for key, value in parts.items() if value} | {
        "operation": asked.operation.value,
        "userInfo": _user_info(asked.user),
        "object": seen.obj,
        "oldObject": seen.old,
        "dryRun": asked.dry_run,
        "options": asked.options,
    }


def _kind(kind: GroupVersionKind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> Json:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def _user_info(user: User) -> Json:
    extra = {key: list(values) for key, values in user.extra.items()}
    info: Json = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in info.items() if value}

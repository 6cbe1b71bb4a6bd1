"""AdmissionRequest for webhooks and CEL expressions."""

from __future__ import annotations

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.authn.user_info import user_info
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json


def admission_request(attributes: Attributes, kind: GroupVersionKind, resource: GroupVersionResource) -> Json:
    """Build the request without uid and objects. `kind` and `resource` are those of the match; unset optional fields
    are omitted."""
    parts: Json = {
        "uid": "",
        "kind": _kind(kind),
        "resource": _resource(resource),
        "subResource": attributes.subresource,
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(attributes.resource),
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
    }
    return {key: value for key, value in parts.items() if value or key == "uid"} | {
        "operation": attributes.operation.value,
        "userInfo": user_info(attributes.user),
        "object": None,
        "oldObject": None,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }


def _kind(kind: GroupVersionKind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> Json:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}

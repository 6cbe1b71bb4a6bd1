"""What the expressions of webhooks and policies see of a request, in the forms that they know."""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

_NAMESPACE_METADATA = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)


def admission_variables(
    seen: VersionedAttributes,
    *,
    resource: GroupVersionResource,
    namespace: Json | None = None,
    params: Json | None = None,
    authorizations: Authorizations | None = None,
) -> dict[str, Any]:
    """`resource` is the one that `request.resource` names."""
    variables: dict[str, Any] = {
        "object": seen.obj,
        "oldObject": seen.old,
        "request": _request(seen.attributes, seen.kind, resource),
        "namespaceObject": None if namespace is None else _namespace(namespace),
        "params": params,
    }
    if authorizations is not None:
        variables["authorizer"] = authorizations.value
        variables["authorizer.requestResource"] = authorizations.for_resource(
            group=seen.attributes.resource.group,
            resource=seen.attributes.resource.resource,
            subresource=seen.attributes.subresource,
            namespace=seen.attributes.namespace,
            name=seen.attributes.name,
        )
    return variables


def _request(attributes: Attributes, kind: GroupVersionKind, resource: GroupVersionResource) -> Json:
    """Of what may be left out, only what there is: expressions must ask with has()."""
    request: Json = {
        "uid": "",
        "kind": _kind(kind),
        "resource": _resource(resource),
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(attributes.resource),
        "operation": attributes.operation.value,
        "userInfo": _user(attributes.user),
        "object": None,
        "oldObject": None,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    optional = {
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
    }
    return request | {name: value for name, value in optional.items() if value}


def _kind(kind: GroupVersionKind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> Json:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def _user(user: User) -> Json:
    extra = {key: list(values) for key, values in user.extra.items()}
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {name: value for name, value in info.items() if value}


def _namespace(namespace: Json) -> Json:
    """Without who manages it and who owns it."""
    meta = namespace.get("metadata") or {}
    return {
        "metadata": {name: meta[name] for name in _NAMESPACE_METADATA if name in meta},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }

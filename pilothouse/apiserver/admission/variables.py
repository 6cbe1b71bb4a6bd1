"""CEL variables of a request for webhooks and policies, in upstream's shape."""

from __future__ import annotations

from typing import Any

from pilothouse.apiserver.admission.request import admission_request
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import METADATA_ORDER, Json

_HIDDEN = ("selfLink", "ownerReferences", "managedFields")
_NAMESPACE_METADATA = tuple(name for name in METADATA_ORDER if name not in _HIDDEN)


def admission_variables(
    seen: VersionedAttributes,
    *,
    resource: GroupVersionResource,
    namespace: Json | None = None,
    params: Json | None = None,
    authorizations: Authorizations | None = None,
) -> dict[str, Any]:
    """Build the variables; `resource` becomes `request.resource`."""
    variables: dict[str, Any] = {
        "object": seen.obj,
        "oldObject": seen.old,
        "request": admission_request(seen.attributes, seen.kind, resource),
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


def _namespace(namespace: Json) -> Json:
    """Return the namespace fields that upstream exposes to expressions."""
    meta = namespace.get("metadata") or {}
    return {
        "metadata": {name: meta[name] for name in _NAMESPACE_METADATA if name in meta},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }

"""A request in the version of the matching rule: converted objects, the AdmissionRequest, and the CEL variables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.matching import Match
from pilothouse.apiserver.authn.user import user_info
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import METADATA_ORDER, Json
from pilothouse.machinery.schema.object_type import DecodeError
from pilothouse.machinery.server_errors import InternalError

if TYPE_CHECKING:
    from pilothouse.apiserver.cel.authorization import Authorizations


@dataclass(frozen=True, slots=True)
class VersionedAttributes:
    """Attributes with converted `obj` and `old`; treat both as read-only."""

    attributes: Attributes
    match: Match
    obj: Json | None
    old: Json | None

    @property
    def kind(self) -> GroupVersionKind:
        return self.match.kind


async def versioned(attributes: Attributes, match: Match) -> VersionedAttributes:
    """Convert the objects of the request. Raises InternalError if the version cannot be reached."""
    obj = await _served(attributes, match, attributes.obj)
    return VersionedAttributes(attributes, match, obj, await _served(attributes, match, attributes.old))


async def admit_change(seen: VersionedAttributes, changed: Json) -> VersionedAttributes:
    """Replace the request's object with a changed object in the version of `seen`.

    The new object is decoded like client input: unknown fields are dropped and defaults applied. Raises InternalError
    if the object is invalid for its kind.
    """
    attributes, match = seen.attributes, seen.match
    assert attributes.obj is not None, "only an object that is there can change"
    form = attributes.equivalents.form(match.resource, attributes.subresource)
    if form is None:
        raise _no_way(match)
    try:
        obj = form.read(changed)
        stored = await form.stored(obj)
    except DecodeError as error:
        raise InternalError.of(str(error)) from None
    # In place: the request handler holds a reference to the object.
    if stored is not attributes.obj:
        attributes.obj.clear()
        attributes.obj.update(stored)
    return replace(seen, obj=await _served(attributes, match, attributes.obj))


async def _served(attributes: Attributes, match: Match, obj: Json | None) -> Json | None:
    if obj is None:
        return None
    form = attributes.equivalents.form(match.resource, attributes.subresource)
    if form is not None:
        return await form.served(obj)
    if match.resource != attributes.resource:
        raise _no_way(match)
    return obj


def _no_way(match: Match) -> InternalError:
    return InternalError.of(f"unable to convert to {match.resource}: unknown kind")


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

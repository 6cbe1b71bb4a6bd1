"""OwnerReferencesPermissionEnforcement: setting an owner requires permission to delete the object.

blockOwnerDeletion requires permission to update the owner's finalizers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.apiserver.authz.interface import Attributes as AuthorizationAttributes
from pilothouse.apiserver.authz.interface import Authorizer, Decision
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, metadata, name_of


@dataclass(frozen=True, slots=True)
class MappedResource:
    resource: str
    namespaced: bool


ResourcesOfKind: TypeAlias = Callable[[GroupVersionKind], list[MappedResource]]


class OwnerReferencesPermissionEnforcement(Handler):
    name = "OwnerReferencesPermissionEnforcement"
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, authorizer: Authorizer, resources_of: ResourcesOfKind) -> None:
        self._authorizer = authorizer
        self._resources_of = resources_of

    async def validate(self, attributes: Attributes) -> None:
        # Old kubelets send invalid owners in pods/status, where owners have no effect.
        if (attributes.resource.resource, attributes.subresource) == ("pods", "status"):
            return
        owners, old = _owners(attributes.obj), _owners(attributes.old)
        if owners == old:
            return
        if attributes.operation is not Operation.CREATE:
            resource = attributes.resource
            question = self._ask(
                attributes,
                verb="delete",
                namespace=attributes.namespace,
                group=resource.group,
                version=resource.version,
                resource=resource.resource,
                subresource=attributes.subresource,
                name=attributes.name,
            )
            reason = "cannot set an ownerRef on a resource you can't delete"
            await self._require(attributes, question, reason)
        blocking = [
            owner
            for owner in owners
            if owner.get("blockOwnerDeletion")
            and not any(before.get("uid") == owner.get("uid") and before.get("blockOwnerDeletion") for before in old)
        ]
        if blocking and not await self._may_finalize_anything(attributes):
            for owner in blocking:
                await self._require_finalizers(attributes, owner)

    async def _may_finalize_anything(self, attributes: Attributes) -> bool:
        question = self._ask(attributes, group="*", version="*", resource="*", name="*")
        return (await self._authorizer.authorize(question)).decision is Decision.ALLOW

    async def _require_finalizers(self, attributes: Attributes, owner: Json) -> None:
        version = GroupVersion.parse(owner.get("apiVersion") or "")
        kind = version.kind(owner.get("kind") or "")
        mapped = self._resources_of(kind)
        if not mapped:
            named = f"APIVersion {owner.get('apiVersion')} Kind {kind.kind}"
            no_match = f"no matches for kind {quote(kind.kind)} in version {quote(str(version))}"
            reason = (
                f"cannot set blockOwnerDeletion in this case because cannot find RESTMapping for {named}: {no_match}"
            )
            raise refused(attributes, reason)
        for resource in mapped:
            question = self._ask(
                attributes,
                group=version.group,
                version=version.version,
                resource=resource.resource,
                name=owner.get("name") or "",
                namespace=attributes.namespace if resource.namespaced else "",
            )
            reason = (
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
            )
            await self._require(attributes, question, reason)

    def _ask(self, attributes: Attributes, **fields: Any) -> AuthorizationAttributes:
        """Authorize the action; by default, an update of finalizers."""
        return AuthorizationAttributes(
            user=attributes.user,
            is_resource=True,
            **{"verb": "update", "subresource": "finalizers", **fields},
        )

    async def _require(self, attributes: Attributes, question: AuthorizationAttributes, reason: str) -> None:
        answer = await self._authorizer.authorize(question)
        if answer.decision is not Decision.ALLOW:
            raise refused(attributes, f"{reason}: {answer.reason}, <nil>")


def _owners(obj: Json | None) -> list[Json]:
    return list(metadata(obj).get("ownerReferences") or ()) if obj is not None else []


def mapped_resources(groups: Iterable[Json], kind: GroupVersionKind) -> list[MappedResource]:
    """Return the resources of the kind, from the discovery documents."""
    return [
        MappedResource(resource["resource"], resource["scope"] == "Namespaced")
        for resource in _resources(groups, kind)
        if (resource.get("responseKind") or {}).get("kind") == kind.kind
    ]


def _resources(groups: Iterable[Json], kind: GroupVersionKind) -> Iterator[Json]:
    for group in groups:
        if name_of(group) == kind.group:
            for version in group["versions"]:
                if version["version"] == kind.version:
                    yield from version.get("resources") or ()

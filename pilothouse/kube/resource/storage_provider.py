"""The storages of resource.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.core.namespaces import NAMESPACES
from pilothouse.kube.resource.admin_access import AdminAccess, AdminAccessStatus, NamespaceLabels
from pilothouse.kube.resource.claim_status import ResourceClaimStatusStore
from pilothouse.kube.resource.device_classes import DEVICE_CLASSES, GROUP
from pilothouse.kube.resource.resource_claim_templates import RESOURCE_CLAIM_TEMPLATES
from pilothouse.kube.resource.resource_claims import RESOURCE_CLAIMS
from pilothouse.kube.resource.resource_slices import RESOURCE_SLICES
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import labels_of


class ResourceStorageProvider:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def open(self, registries: Registries) -> APIGroup:
        labels = _labels_in(registries.open(NAMESPACES))
        claims, templates = registries.open(RESOURCE_CLAIMS), registries.open(RESOURCE_CLAIM_TEMPLATES)
        statuses = claims.with_hooks(AdminAccessStatus(labels))
        resources = [
            served(claims, claims.with_hooks(AdminAccess(labels, ("spec",)))),
            served(claims, ResourceClaimStatusStore(statuses, self._authorizer), subresource="status"),
            served(templates, templates.with_hooks(AdminAccess(labels, ("spec", "spec")))),
            served(registries.open(DEVICE_CLASSES)),
            served(registries.open(RESOURCE_SLICES)),
        ]
        return APIGroup(GROUP, [APIVersion(GroupVersion(GROUP, "v1"), resources)])


def _labels_in(namespaces: RegistryStore) -> NamespaceLabels:
    async def labels(name: str) -> dict[str, str] | None:
        found = await namespaces.newest("", name)
        return None if found is None else labels_of(found.parse())

    return labels

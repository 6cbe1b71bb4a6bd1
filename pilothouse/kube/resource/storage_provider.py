"""The storages of resource.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.kube.api_lifecycle import in_storage_version
from pilothouse.kube.core.namespaces import NAMESPACES
from pilothouse.kube.registries import Registries
from pilothouse.kube.resource.claim_authorization import AdminAccess, AdminAccessStatus, ResourceClaimStatusStore
from pilothouse.kube.resource.device_classes import DEVICE_CLASSES, GROUP
from pilothouse.kube.resource.device_taint_rules import DEVICE_TAINT_RULES, STABLE_DEVICE_TAINT_RULES
from pilothouse.kube.resource.resource_claim_templates import RESOURCE_CLAIM_TEMPLATES
from pilothouse.kube.resource.resource_claims import RESOURCE_CLAIMS
from pilothouse.kube.resource.resource_pool_status_requests import RESOURCE_POOL_STATUS_REQUESTS
from pilothouse.kube.resource.resource_slices import RESOURCE_SLICES
from pilothouse.kube.resource.v1beta1 import V1BETA1, V1BETA1_CONVERSIONS
from pilothouse.kube.served import in_version, served, with_status
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import labels_of

_V1, _V1BETA2, _V1ALPHA3 = (GroupVersion(GROUP, version) for version in ("v1", "v1beta2", "v1alpha3"))


@dataclass(frozen=True, slots=True)
class ResourceStorageProvider:
    authorizer: Authorizer

    def open(self, registries: Registries) -> APIGroup:
        namespaces = registries.open(NAMESPACES)

        async def labels(name: str) -> dict[str, str] | None:
            existing = await namespaces.newest("", name)
            return None if existing is None else labels_of(existing.parse())

        claims, templates = registries.open(RESOURCE_CLAIMS), registries.open(RESOURCE_CLAIM_TEMPLATES)
        statuses = claims.with_hooks(AdminAccessStatus(labels))
        resources = [
            served(claims, claims.with_hooks(AdminAccess(labels, ("spec",)))),
            served(claims, ResourceClaimStatusStore(statuses, self.authorizer), subresource="status"),
            served(templates, templates.with_hooks(AdminAccess(labels, ("spec", "spec")))),
            served(registries.open(DEVICE_CLASSES)),
            served(registries.open(RESOURCE_SLICES)),
        ]
        rules, stable_rules = list[ServedResource](), list[ServedResource]()
        if registries.is_enabled(DEVICE_TAINT_RULES, "v1", "v1beta2", "v1alpha3"):
            registry = registries.open(DEVICE_TAINT_RULES)
            rules = with_status(registry)
            stable_rules = with_status(registry.with_resource(in_storage_version(STABLE_DEVICE_TAINT_RULES)))
        versions = {
            _V1: in_version(_V1, [*resources, *stable_rules]),
            _V1BETA2: in_version(_V1BETA2, [*resources, *rules]),
            V1BETA1: in_version(V1BETA1, resources, conversions=V1BETA1_CONVERSIONS),
            _V1ALPHA3: [*in_version(_V1ALPHA3, rules), *_pool_status_requests(registries)],
        }
        return APIGroup(GROUP, [APIVersion(version, resources) for version, resources in versions.items()])


def _pool_status_requests(registries: Registries) -> list[ServedResource]:
    if not registries.is_enabled(RESOURCE_POOL_STATUS_REQUESTS, "v1alpha3"):
        return []
    return with_status(registries.open(RESOURCE_POOL_STATUS_REQUESTS))

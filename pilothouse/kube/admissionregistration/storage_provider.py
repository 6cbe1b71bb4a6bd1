"""The storages of admissionregistration.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.admissionregistration.mutating_policies import MUTATING_ADMISSION_POLICIES
from pilothouse.kube.admissionregistration.param_access import (
    ParamCheckedStorage,
    ParamKindAccess,
    ParamRefAccess,
    ResolveKind,
)
from pilothouse.kube.admissionregistration.policy_bindings import (
    MUTATING_ADMISSION_POLICY_BINDINGS,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
)
from pilothouse.kube.admissionregistration.strategy import GROUP
from pilothouse.kube.admissionregistration.validating_policies import (
    VALIDATING_ADMISSION_POLICIES,
    ValidatingPolicyStatusStrategy,
)
from pilothouse.kube.admissionregistration.webhook_configurations import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from pilothouse.kube.served import Registries, VersionConversion, served
from pilothouse.machinery.field import root
from pilothouse.machinery.names import GroupVersion, GroupVersionKind

_V1 = GroupVersion(GROUP, "v1")
_WEBHOOKS = (VALIDATING_WEBHOOK_CONFIGURATIONS, MUTATING_WEBHOOK_CONFIGURATIONS)
_POLICIES = (
    (VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS),
    (MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS),
)


class AdmissionRegistrationStorageProvider:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def open(self, registries: Registries) -> APIGroup:
        policies = registries.open(VALIDATING_ADMISSION_POLICIES)
        # The only status that upstream lets an apply create a whole object by.
        statuses = StatusStore(policies, ValidatingPolicyStatusStrategy(), may_be_applied=True)
        resources = [
            *(served(registries.open(resource)) for resource in _WEBHOOKS),
            *(each for pair in _POLICIES for each in self._served(registries, *pair)),
            served(policies, statuses, subresource="status"),
        ]
        return APIGroup(GROUP, [APIVersion(_V1, resources)])

    def _served(self, registries: Registries, policy: Resource, binding: Resource) -> list[ServedResource]:
        policies, bindings, resolve = registries.open(policy), registries.open(binding), _resolver(registries)
        to_kind = ParamKindAccess(self._authorizer, resolve)
        to_reference = ParamRefAccess(self._authorizer, resolve, OwnAccess(policies).get)
        return [
            _served_as_v1(ParamCheckedStorage(policies, to_kind, root("spec", "paramKind"))),
            _served_as_v1(ParamCheckedStorage(bindings, to_reference, root("spec", "paramRef"))),
        ]


def _served_as_v1(storage: ParamCheckedStorage) -> ServedResource:
    """The versions differ in nothing but their names."""
    registry, resource = storage.registry, storage.resource
    if resource.version == _V1.version:
        return served(registry, storage)
    conversion = VersionConversion(
        kind=_V1.kind(resource.names.kind),
        to_stored=lambda obj: {**obj, "apiVersion": resource.kind.api_version},
        from_stored=lambda obj: {**obj, "apiVersion": str(_V1)},
        default=resource.strategy.default,
    )
    return served(registry, storage, conversion=conversion)


def _resolver(registries: Registries) -> ResolveKind:
    def resource_of(kind: GroupVersionKind) -> str | None:
        opened = (registry.resource for registry in registries.opened)
        return next((resource.names.plural for resource in opened if resource.kind == kind), None)

    return resource_of

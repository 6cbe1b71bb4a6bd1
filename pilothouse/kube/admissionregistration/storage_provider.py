"""The storages of admissionregistration.k8s.io."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion, ServedResource
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.registry.view import StatusStore
from pilothouse.kube.admissionregistration import param_access, policy_bindings, webhook_configurations
from pilothouse.kube.admissionregistration.policies import (
    MUTATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICIES,
    ValidatingPolicyStatusStrategy,
)
from pilothouse.kube.admissionregistration.strategy import GROUP
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import in_version, served
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import root
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, part

_V1, _V1BETA1, _V1ALPHA1 = (GroupVersion(GROUP, version) for version in ("v1", "v1beta1", "v1alpha1"))
_WEBHOOKS = (
    webhook_configurations.VALIDATING_WEBHOOK_CONFIGURATIONS,
    webhook_configurations.MUTATING_WEBHOOK_CONFIGURATIONS,
)
_VALIDATING = (VALIDATING_ADMISSION_POLICIES, policy_bindings.VALIDATING_ADMISSION_POLICY_BINDINGS)
_MUTATING = (MUTATING_ADMISSION_POLICIES, policy_bindings.MUTATING_ADMISSION_POLICY_BINDINGS)


@dataclass(frozen=True, slots=True)
class AdmissionRegistrationStorageProvider:
    authorizer: Authorizer

    def open(self, registries: Registries) -> APIGroup:
        policies = registries.open(VALIDATING_ADMISSION_POLICIES)
        # Upstream allows server-side apply to create an object through this status only.
        statuses = StatusStore(policies, ValidatingPolicyStatusStrategy(), may_be_applied=True)
        mutating = self._served(registries, *_MUTATING)
        resources = [
            *(served(registries.open(resource)) for resource in _WEBHOOKS),
            *self._served(registries, *_VALIDATING),
            *in_version(_V1, mutating),
            served(policies, statuses, subresource="status"),
        ]
        policy, binding = in_version(_V1ALPHA1, mutating)
        alpha = [policy, replace(binding, default=_default_alpha_binding)]
        beta = in_version(_V1BETA1, mutating)
        return APIGroup(GROUP, [APIVersion(_V1, resources), APIVersion(_V1BETA1, beta), APIVersion(_V1ALPHA1, alpha)])

    def _served(self, registries: Registries, policy: Resource, binding: Resource) -> list[ServedResource]:
        policies, bindings, resolve = registries.open(policy), registries.open(binding), _resolver(registries)
        to_kind = param_access.ParamKindAccess(self.authorizer, resolve)
        to_reference = param_access.ParamRefAccess(self.authorizer, resolve, OwnAccess(policies).get)
        return [
            served(policies, param_access.ParamCheckedStorage(policies, to_kind, root("spec", "paramKind"))),
            served(bindings, param_access.ParamCheckedStorage(bindings, to_reference, root("spec", "paramRef"))),
        ]


def _default_alpha_binding(obj: Json) -> None:
    """Set the defaults, and one that only v1alpha1 has."""
    policy_bindings.MUTATING_ADMISSION_POLICY_BINDINGS.strategy.default(obj)
    if (reference := part(obj, "spec").get("paramRef")) is not None:
        reference.setdefault("parameterNotFoundAction", "Deny")


def _resolver(registries: Registries) -> param_access.ResolveKind:
    def resource_of(kind: GroupVersionKind) -> str | None:
        opened = (registry.resource for registry in registries.opened)
        return next((resource.names.plural for resource in opened if resource.kind == kind), None)

    return resource_of

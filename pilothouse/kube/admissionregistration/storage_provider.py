"""The storages of admissionregistration.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.admissionregistration.mutating_policies import MUTATING_ADMISSION_POLICIES
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
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion

_PLAIN = (
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
)


class AdmissionRegistrationStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        policies = registries.open(VALIDATING_ADMISSION_POLICIES)
        resources = [
            *(served(registries.open(resource)) for resource in _PLAIN),
            served(policies),
            served(policies, StatusStore(policies, ValidatingPolicyStatusStrategy()), subresource="status"),
        ]
        return APIGroup(GROUP, [APIVersion(GroupVersion(GROUP, "v1"), resources)])

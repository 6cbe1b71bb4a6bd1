"""The storages of certificates.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.certificates.metrics import IssuedDurations
from pilothouse.kube.certificates.resource import CERTIFICATE_SIGNING_REQUESTS, GROUP
from pilothouse.kube.certificates.strategy import (
    CertificateSigningRequestApprovalStrategy,
    CertificateSigningRequestStatusStrategy,
)
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class CertificatesStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        registry = registries.open(CERTIFICATE_SIGNING_REQUESTS)
        status = StatusStore(registry.with_hooks(IssuedDurations()), CertificateSigningRequestStatusStrategy())
        approval = StatusStore(registry, CertificateSigningRequestApprovalStrategy())
        resources = [
            served(registry),
            served(registry, approval, subresource="approval"),
            served(registry, status, subresource="status"),
        ]
        return APIGroup(GROUP, [APIVersion(GroupVersion(GROUP, "v1"), resources)])

"""The storages of coordination.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.kube.coordination.leases import GROUP, LEASES
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class CoordinationStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        return APIGroup(GROUP, [APIVersion(GroupVersion(GROUP, "v1"), [served(registries.open(LEASES))])])

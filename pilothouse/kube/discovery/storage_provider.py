"""The storages of discovery.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.kube.discovery.endpoint_slices import ENDPOINT_SLICES
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class DiscoveryStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        resources = [served(registries.open(ENDPOINT_SLICES))]
        return APIGroup("discovery.k8s.io", [APIVersion(GroupVersion("discovery.k8s.io", "v1"), resources)])

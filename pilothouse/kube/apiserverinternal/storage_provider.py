"""The storages of internal.apiserver.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.apiserverinternal.storage_versions import GROUP, STORAGE_VERSIONS, StorageVersionStatusStrategy
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion

_V1ALPHA1 = GroupVersion(GROUP, "v1alpha1")


class APIServerInternalStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        if not registries.any_enabled(_V1ALPHA1):
            return APIGroup(GROUP, [])
        versions = registries.open(STORAGE_VERSIONS)
        status = StatusStore(versions, StorageVersionStatusStrategy())
        return APIGroup(
            GROUP, [APIVersion(_V1ALPHA1, [served(versions), served(versions, status, subresource="status")])]
        )

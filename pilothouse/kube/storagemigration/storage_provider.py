"""The storages of storagemigration.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.served import Registries, served
from pilothouse.kube.storagemigration.storage_version_migrations import (
    GROUP,
    STORAGE_VERSION_MIGRATIONS,
    StorageVersionMigrationStatusStrategy,
)
from pilothouse.machinery.names import GroupVersion

_V1BETA1 = GroupVersion(GROUP, "v1beta1")


class StorageMigrationStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        if not registries.features.enabled("StorageVersionMigrator") or not registries.any_enabled(_V1BETA1):
            return APIGroup(GROUP, [])
        migrations = registries.open(STORAGE_VERSION_MIGRATIONS)
        status = StatusStore(migrations, StorageVersionMigrationStatusStrategy())
        resources = [served(migrations), served(migrations, status, subresource="status")]
        return APIGroup(GROUP, [APIVersion(_V1BETA1, resources)])

"""The storages of storage.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.served import Registries, served
from pilothouse.kube.storage.csidrivers import CSI_DRIVERS
from pilothouse.kube.storage.csinodes import CSI_NODES
from pilothouse.kube.storage.csistoragecapacities import CSI_STORAGE_CAPACITIES
from pilothouse.kube.storage.storageclasses import GROUP, STORAGE_CLASSES
from pilothouse.kube.storage.volumeattachments import VOLUME_ATTACHMENTS, VolumeAttachmentStatusStrategy
from pilothouse.kube.storage.volumeattributesclasses import VOLUME_ATTRIBUTES_CLASSES
from pilothouse.machinery.names import GroupVersion


class StorageStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        attachments = registries.open(VOLUME_ATTACHMENTS)
        resources = [
            served(registries.open(CSI_DRIVERS)),
            served(registries.open(CSI_NODES)),
            served(registries.open(CSI_STORAGE_CAPACITIES)),
            served(registries.open(STORAGE_CLASSES)),
            served(attachments),
            served(attachments, StatusStore(attachments, VolumeAttachmentStatusStrategy()), subresource="status"),
            served(registries.open(VOLUME_ATTRIBUTES_CLASSES)),
        ]
        return APIGroup(GROUP, [APIVersion(GroupVersion(GROUP, "v1"), resources)])

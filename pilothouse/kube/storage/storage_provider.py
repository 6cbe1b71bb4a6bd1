"""The storages of storage.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.deprecation import Deprecation
from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.other_versions import in_version
from pilothouse.kube.served import Registries, served
from pilothouse.kube.storage.csidrivers import CSI_DRIVERS
from pilothouse.kube.storage.csinodes import CSI_NODES
from pilothouse.kube.storage.csistoragecapacities import CSI_STORAGE_CAPACITIES
from pilothouse.kube.storage.storageclasses import GROUP, STORAGE_CLASSES
from pilothouse.kube.storage.volumeattachments import VOLUME_ATTACHMENTS, VolumeAttachmentStatusStrategy
from pilothouse.kube.storage.volumeattributesclasses import VOLUME_ATTRIBUTES_CLASSES
from pilothouse.machinery.names import GroupVersion

_V1, _V1BETA1 = GroupVersion(GROUP, "v1"), GroupVersion(GROUP, "v1beta1")


class StorageStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        attachments = registries.open(VOLUME_ATTACHMENTS)
        classes = [served(registries.open(VOLUME_ATTRIBUTES_CLASSES))]
        resources = [
            served(registries.open(CSI_DRIVERS)),
            served(registries.open(CSI_NODES)),
            served(registries.open(CSI_STORAGE_CAPACITIES)),
            served(registries.open(STORAGE_CLASSES)),
            served(attachments),
            served(attachments, StatusStore(attachments, VolumeAttachmentStatusStrategy()), subresource="status"),
            *classes,
        ]
        deprecation = Deprecation("1.34", "1.37", replacement=VOLUME_ATTRIBUTES_CLASSES.kind)
        beta = in_version(_V1BETA1, classes, deprecation=deprecation)
        return APIGroup(GROUP, [APIVersion(_V1, resources), APIVersion(_V1BETA1, beta)])

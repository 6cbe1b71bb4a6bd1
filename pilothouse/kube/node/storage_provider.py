"""The storages of node.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.kube.node.runtimeclasses import GROUP, RUNTIME_CLASSES
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class NodeStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        return APIGroup(GROUP, [APIVersion(GroupVersion(GROUP, "v1"), [served(registries.open(RUNTIME_CLASSES))])])

"""The storages of scheduling.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.kube.scheduling.priorityclasses import GROUP, PRIORITY_CLASSES, SystemPriorityClasses
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class SchedulingStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        classes = registries.open(PRIORITY_CLASSES)
        return APIGroup(
            GROUP,
            [APIVersion(GroupVersion(GROUP, "v1"), [served(classes)])],
            post_start_hooks={
                "scheduling/bootstrap-system-priority-classes": SystemPriorityClasses(classes).start,
            },
        )

"""The storages of scheduling.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.scheduling.pod_groups import POD_GROUPS, PodGroupStatusStrategy
from pilothouse.kube.scheduling.priorityclasses import GROUP, PRIORITY_CLASSES, SystemPriorityClasses
from pilothouse.kube.scheduling.workloads import WORKLOADS
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion

_V1ALPHA2 = GroupVersion(GROUP, "v1alpha2")


class SchedulingStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        classes = registries.open(PRIORITY_CLASSES)
        return APIGroup(
            GROUP,
            [APIVersion(GroupVersion(GROUP, "v1"), [served(classes)]), *_workloads(registries)],
            post_start_hooks={
                "scheduling/bootstrap-system-priority-classes": SystemPriorityClasses(classes).start,
            },
        )


def _workloads(registries: Registries) -> list[APIVersion]:
    if not registries.features.enabled("GenericWorkload") or not registries.any_enabled(_V1ALPHA2):
        return []
    groups = registries.open(POD_GROUPS)
    status = StatusStore(groups, PodGroupStatusStrategy())
    resources = [served(registries.open(WORKLOADS)), served(groups), served(groups, status, subresource="status")]
    return [APIVersion(_V1ALPHA2, resources)]

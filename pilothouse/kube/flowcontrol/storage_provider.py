"""The storages of flowcontrol.apiserver.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.flowcontrol.bootstrap import GROUP
from pilothouse.kube.flowcontrol.ensurer import BootstrapConfigurationEnsurer
from pilothouse.kube.flowcontrol.flow_schemas import FLOW_SCHEMAS, FlowSchemaStatusStrategy
from pilothouse.kube.flowcontrol.priority_levels import PRIORITY_LEVELS, PriorityLevelStatusStrategy
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class FlowControlStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        schemas, levels = registries.open(FLOW_SCHEMAS), registries.open(PRIORITY_LEVELS)
        resources = [
            served(schemas),
            served(schemas, StatusStore(schemas, FlowSchemaStatusStrategy()), subresource="status"),
            served(levels),
            served(levels, StatusStore(levels, PriorityLevelStatusStrategy()), subresource="status"),
        ]
        return APIGroup(
            GROUP,
            [APIVersion(GroupVersion(GROUP, "v1"), resources)],
            post_start_hooks={
                "priority-and-fairness-config-producer": BootstrapConfigurationEnsurer(levels, schemas).start,
            },
        )

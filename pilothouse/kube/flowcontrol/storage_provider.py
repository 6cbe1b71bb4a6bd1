"""The storages of flowcontrol.apiserver.k8s.io."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import PostStartHook, nothing_to_start
from pilothouse.kube.flowcontrol.consumer import ConfigurationConsumer
from pilothouse.kube.flowcontrol.ensurer import BootstrapConfigurationEnsurer
from pilothouse.kube.flowcontrol.flow_schemas import FLOW_SCHEMAS
from pilothouse.kube.flowcontrol.priority_levels import PRIORITY_LEVELS
from pilothouse.kube.flowcontrol.status import GROUP
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import with_status
from pilothouse.machinery.names import GroupVersion


class FlowControlStorageProvider:
    def __init__(self, controller: FlowController | None = None) -> None:
        """Without a controller, the objects are stored and have no effect."""
        self._controller = controller

    def open(self, registries: Registries) -> APIGroup:
        schemas, levels = registries.open(FLOW_SCHEMAS), registries.open(PRIORITY_LEVELS)
        resources = [*with_status(schemas), *with_status(levels)]
        return APIGroup(
            GROUP,
            [APIVersion(GroupVersion(GROUP, "v1"), resources)],
            post_start_hooks={
                "priority-and-fairness-config-producer": BootstrapConfigurationEnsurer(levels, schemas).start,
                **self._consumer(schemas, levels),
            },
        )

    def _consumer(self, schemas: RegistryStore, levels: RegistryStore) -> dict[str, PostStartHook]:
        if self._controller is None:
            return {}
        consumer = ConfigurationConsumer(self._controller, schemas, levels)
        return {
            "priority-and-fairness-config-consumer": consumer.start,
            "priority-and-fairness-filter": nothing_to_start,
        }

"""Priority and fairness by the FlowSchemas and PriorityLevelConfigurations of the cluster.

Before they are loaded, or without permission to read them, the two mandatory levels share the seats.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pilothouse.apiserver.filters.priority_and_fairness import FlowControl
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.flowcontrol.estimate import ResourceStats
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.informer_factory import SharedInformerFactory
from pilothouse.client.rest.client import Client
from pilothouse.machinery.names import GroupResource, GroupVersionResource

_SCHEMAS = GroupVersionResource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas")
_LEVELS = GroupVersionResource("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations")


class ClusterFlowControl:
    """Flow control that follows the cluster. `control` is for the filter; `run` follows until cancelled."""

    def __init__(
        self, client: Client, controller: FlowController, registries: Sequence[RegistryStore], *, request_timeout: float
    ) -> None:
        self._client = client
        self._controller = controller
        self._registries = registries
        self._changed = asyncio.Event()
        # As upstream: the maximum queue wait is a quarter of the request timeout.
        self.control = FlowControl(controller, self._stats, request_timeout / 4)

    async def run(self) -> None:
        factory = SharedInformerFactory(self._client)
        handler = ResourceEventHandlerFuncs(
            add=lambda _: self._changed.set(),
            update=lambda *_: self._changed.set(),
            delete=lambda _: self._changed.set(),
        )
        for resource in (_SCHEMAS, _LEVELS):
            factory.for_resource(resource).add_event_handler(handler)
        async with factory, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._controller.run())
            await factory.wait_for_cache_sync()
            schemas, levels = factory.lister(_SCHEMAS), factory.lister(_LEVELS)
            while True:
                self._changed.clear()
                self._controller.configure(schemas.list(), levels.list())
                await self._changed.wait()

    def _stats(self, resource: GroupResource) -> ResourceStats | None:
        for registry in self._registries:
            if registry.resource.group_resource == resource:
                return ResourceStats(registry.known_count, registry.watcher_count)
        return None

"""The storages of flowcontrol.apiserver.k8s.io."""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.registry.informer import RegistryInformer
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.hooks import HookContext, PostStartHook, nothing_to_start
from pilothouse.kube.flowcontrol.ensurer import BootstrapConfigurationEnsurer
from pilothouse.kube.flowcontrol.flow_schemas import FLOW_SCHEMAS, FlowSchemaStatusStrategy
from pilothouse.kube.flowcontrol.priority_levels import GROUP, PRIORITY_LEVELS
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import tracked_access, with_status
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import now

_DANGLING = "Dangling"

_FIELD_MANAGER = "api-priority-and-fairness-config-consumer-v1"


@dataclass(frozen=True, slots=True)
class FlowControlStorageProvider:
    controller: FlowController | None = None
    """Without a controller, the objects are stored and have no effect."""

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
        if self.controller is None:
            return {}
        consumer = ConfigurationConsumer(self.controller, schemas, levels)
        return {
            "priority-and-fairness-config-consumer": consumer.start,
            "priority-and-fairness-filter": nothing_to_start,
        }


_log = logging.getLogger(__name__)


class ConfigurationConsumer:
    def __init__(self, controller: FlowController, schemas: RegistryStore, levels: RegistryStore) -> None:
        self._controller = controller
        self._schemas, self._levels = RegistryInformer(schemas), RegistryInformer(levels)
        statuses = schemas.with_strategy(FlowSchemaStatusStrategy())
        self._statuses = tracked_access(statuses, manager=_FIELD_MANAGER, subresource="status")
        self._changed = asyncio.Event()
        for informer in (self._schemas, self._levels):
            informer.listen(lambda _: self._changed.set())

    async def start(self, context: HookContext) -> None:
        context.spawn(self._schemas.run(), name="flow schemas")
        context.spawn(self._levels.run(), name="priority levels")
        context.spawn(self._controller.run(), name="priority-and-fairness seats")
        context.spawn(self._follow(), name="priority-and-fairness-config-consumer")

    async def _follow(self) -> None:
        """Several changes at once are taken over together."""
        await asyncio.gather(self._schemas.wait_synced(), self._levels.wait_synced())
        while True:
            self._changed.clear()
            schemas = self._schemas.all()
            self._controller.configure(schemas, self._levels.all())
            for schema in schemas:
                level = schema["spec"]["priorityLevelConfiguration"]["name"]
                exists = self._levels.get(level) is not None
                statement = f"This FlowSchema references the PriorityLevelConfiguration object named {quote(level)}"
                desired = {
                    "type": _DANGLING,
                    "status": "False" if exists else "True",
                    "lastTransitionTime": now(),
                    "reason": "Found" if exists else "NotFound",
                    "message": f"{statement} {'and it exists' if exists else 'but there is no such object'}",
                }
                conditions = (schema.get("status") or {}).get("conditions") or []
                current: Json = next((condition for condition in conditions if condition.get("type") == _DANGLING), {})
                if not all(current.get(field) == desired[field] for field in ("status", "reason", "message")):
                    try:
                        kind = FLOW_SCHEMAS.kind
                        meta = {"name": name_of(schema)}
                        await self._statuses.apply(
                            {
                                "kind": kind.kind,
                                "apiVersion": kind.api_version,
                                "metadata": meta,
                                "status": {"conditions": [desired]},
                            }
                        )
                    except StatusError as error:
                        _log.warning("the status of flow schema %s is not written: %s", name_of(schema), error)
            await self._changed.wait()

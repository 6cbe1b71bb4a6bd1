"""NoExecute taints for nodes that are not ready, removed when they are ready again."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import NoReturn

from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.metrics import metrics_in
from pilothouse.controllers.nodelifecycle.disruption import Zones
from pilothouse.controllers.nodelifecycle.health import READY
from pilothouse.controllers.nodelifecycle.metrics import NodeLifecycleMetrics
from pilothouse.controllers.nodelifecycle.taints import NOT_READY, UNREACHABLE, change_taints
from pilothouse.controllers.nodelifecycle.zones import zone_key
from pilothouse.controllers.resources import NODES
from pilothouse.kinds.conditions import find_condition
from pilothouse.kinds.nodes import TaintIdentity, has_taint
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_PERIOD = 0.1
_TAINT_OF: dict[str, tuple[TaintIdentity, TaintIdentity]] = {
    "False": (NOT_READY, UNREACHABLE),
    "Unknown": (UNREACHABLE, NOT_READY),
}
"""Ready status → (taint to add, taint to remove)."""


class NodeTainter:
    def __init__(self, context: ControllerContext, zones: Zones) -> None:
        self._client, self._clock = context.client, context.clock
        self._nodes = context.informer(NODES)
        self._metrics = metrics_in(context.registry, NodeLifecycleMetrics)
        self._zones = zones
        self._added = asyncio.Event()

    async def run(self) -> NoReturn:
        """Taint queued nodes at the rates of their zones, until cancelled."""
        while True:
            await self._added.wait()
            for zone, queue in [*self._zones.queues.items()]:
                await queue.work(partial(self._taint_node, zone))
            if not any(queue.has_waiting for queue in self._zones.queues.values()):
                self._added.clear()
            await self._clock.sleep(_PERIOD)

    def forget(self, node: str) -> None:
        for queue in self._zones.queues.values():
            queue.remove(node)

    async def taint_or_clear(self, node: Json, status: str) -> None:
        """Make the node's taints match the status of its Ready condition."""
        if status not in _TAINT_OF:
            await self.mark_reachable(node)
            return
        wanted, opposite = _TAINT_OF[status]
        if has_taint(node, opposite):
            await self._swap(node, wanted, opposite)
            return
        queue = self._zones.queue(zone_key(node))
        if not has_taint(node, wanted):
            queue.remove(name_of(node))
        if queue.add(name_of(node)):
            self._added.set()

    async def mark_reachable(self, node: Json) -> None:
        self._zones.queue(zone_key(node)).remove(name_of(node))
        if has_taint(node, NOT_READY) or has_taint(node, UNREACHABLE):
            try:
                await change_taints(self._client, node, (), (NOT_READY, UNREACHABLE), self._clock.wall())
            except StatusError as error:
                logger.error("can not remove the taints of node %s: %s", name_of(node), error)

    async def _swap(self, node: Json, wanted: TaintIdentity, opposite: TaintIdentity) -> bool:
        try:
            await change_taints(self._client, node, (wanted,), (opposite,), self._clock.wall())
        except NotFound:
            return True
        except StatusError as error:
            logger.error("can not taint node %s: %s", name_of(node), error)
            return False
        return True

    async def _taint_node(self, zone: str, name: str) -> bool:
        """Taint the node; return whether it is done."""
        node = self._nodes.indexer.get_by_key(name)
        condition = find_condition(node, READY) if node is not None else None
        if node is None or condition is None or condition.get("status") not in _TAINT_OF:
            return node is None or condition is not None
        if done := await self._swap(node, *_TAINT_OF[condition["status"]]):
            self._metrics.evictions.inc((zone,))
        return done

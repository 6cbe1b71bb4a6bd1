"""Taints of nodes: NoExecute for nodes that are not ready, NoSchedule from other conditions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NoReturn

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext, metrics_in
from pilothouse.controllers.nodelifecycle.health import READY
from pilothouse.controllers.nodelifecycle.metrics import NodeLifecycleMetrics
from pilothouse.controllers.nodelifecycle.zones import Zones, zone_key
from pilothouse.controllers.resources import NODES
from pilothouse.kinds.conditions import conditions_of, find_condition
from pilothouse.kinds.nodes import TaintIdentity, has_taint, is_unschedulable, taint_identity, taints_of
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, labels_of, name_of, resource_version_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import format_time

logger = logging.getLogger(__name__)

_PERIOD = 0.1
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
NOT_READY: TaintIdentity = ("node.kubernetes.io/not-ready", NO_EXECUTE)
UNREACHABLE: TaintIdentity = ("node.kubernetes.io/unreachable", NO_EXECUTE)
_TAINT_OF: dict[str, tuple[TaintIdentity, TaintIdentity]] = {
    "False": (NOT_READY, UNREACHABLE),
    "Unknown": (UNREACHABLE, NOT_READY),
}
"""Ready status → (taint to add, taint to remove)."""
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_CONDITION_TAINTS = {
    ("Ready", "False"): "node.kubernetes.io/not-ready",
    ("Ready", "Unknown"): "node.kubernetes.io/unreachable",
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OWN_KEYS = {_UNSCHEDULABLE, *_CONDITION_TAINTS.values()}
_TRIES = 5
_NAME = "node_lifecycle_controller"
_WORKERS = 8
_OLD_LABELS = {
    "kubernetes.io/os": "beta.kubernetes.io/os",
    "kubernetes.io/arch": "beta.kubernetes.io/arch",
}


class NodeTainter:
    """Taints nodes that are not ready with NoExecute, and removes the taint when they are ready again."""

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


def no_schedule_changes(node: Json) -> tuple[list[TaintIdentity], list[TaintIdentity]]:
    """Return (missing, obsolete) NoSchedule taints according to the node's conditions."""
    wanted = [*_wanted_no_schedule(node)]
    present = [taint_identity(taint) for taint in taints_of(node)]
    own = [taint for taint in present if taint[1] == NO_SCHEDULE and taint[0] in _OWN_KEYS]
    return [taint for taint in wanted if taint not in own], [taint for taint in own if taint not in wanted]


def _wanted_no_schedule(node: Json) -> Iterator[TaintIdentity]:
    for condition in conditions_of(node):
        if key := _CONDITION_TAINTS.get((condition.get("type") or "", condition.get("status") or "")):
            yield key, NO_SCHEDULE
    if is_unschedulable(node):
        yield _UNSCHEDULABLE, NO_SCHEDULE


async def change_taints(
    client: Client, node: Json, add: Sequence[TaintIdentity], remove: Sequence[TaintIdentity], now: float
) -> Json:
    """Return the node with changed taints, in one write; no-op if unchanged. Raises StatusError."""
    nodes = client.for_resource(NODES)
    for _ in range(_TRIES - 1):
        try:
            return await _change_once(client, node, add, remove, now)
        except Conflict:
            node = await nodes.get(name_of(node))
    return await _change_once(client, node, add, remove, now)


async def _change_once(
    client: Client, node: Json, add: Sequence[TaintIdentity], remove: Sequence[TaintIdentity], now: float
) -> Json:
    added_at = format_time(datetime.fromtimestamp(now, UTC))
    old = taints_of(node)
    present = {taint_identity(taint) for taint in old}
    taints = [taint for taint in old if taint_identity(taint) not in remove]
    taints += [
        {"key": key, "effect": effect, "timeAdded": added_at} for key, effect in add if (key, effect) not in present
    ]
    if taints == old:
        return node
    patch = {"metadata": {"resourceVersion": resource_version_of(node)}, "spec": {"taints": taints or None}}
    return await client.for_resource(NODES).patch(name_of(node), patch, PatchType.STRATEGIC)


class NodeSyncs:
    """Syncs single nodes: NoSchedule taints from conditions, and deprecated labels."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._nodes = context.informer(NODES)
        self._queue = context.queue(_NAME, str)
        self._nodes.add_event_handler(
            ResourceEventHandlerFuncs(add=self._changed, update=lambda old, new: self._changed(new))
        )

    async def run(self) -> None:
        caches, clock = (self._nodes,), self._context.clock
        controller = Controller(_NAME, self._sync, caches=caches, workers=_WORKERS, queue=self._queue, clock=clock)
        await controller.run()

    def _changed(self, node: Json) -> None:
        """Enqueue only nodes that need a change: heartbeats are frequent and rarely matter."""
        if any(no_schedule_changes(node)) or missing_labels(node):
            self._queue.add(name_of(node))

    async def _sync(self, name: str) -> None:
        node = self._nodes.indexer.get_by_key(name)
        if node is None:
            return
        client = self._context.client
        add, remove = no_schedule_changes(node)
        try:
            if add or remove:
                await change_taints(client, node, add, remove, self._context.clock.wall())
            if labels := missing_labels(node):
                patch = {"metadata": {"labels": labels}}
                await client.for_resource(NODES).patch(name, patch, PatchType.STRATEGIC)
        except NotFound:
            return


def missing_labels(node: Json) -> dict[str, str]:
    """Return deprecated labels that are missing or differ from their successors."""
    labels = labels_of(node)
    wanted = {old: labels[new] for new, old in _OLD_LABELS.items() if new in labels}
    return {name: value for name, value in wanted.items() if labels.get(name) != value}

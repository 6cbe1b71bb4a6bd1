"""node-lifecycle-controller: sets unknown conditions on unresponsive nodes and taints them.

A heartbeat is a renewed lease or a changed node status. Without heartbeats, the node's conditions become Unknown and
its pods not ready. Nodes that are not ready are tainted NoExecute, at a rate given by the health of their zone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.shared_informer import wait_for_cache_sync
from pilothouse.client.clock import utc_now
from pilothouse.client.controller import Controller
from pilothouse.client.events.event import NORMAL, WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.wait import until
from pilothouse.controllers.context import ControllerContext, ObjectSelection, metrics_in
from pilothouse.controllers.nodelifecycle.health import (
    READY,
    NodeHealth,
    is_silent,
    observe,
    with_unknown_conditions,
)
from pilothouse.controllers.nodelifecycle.metrics import NodeLifecycleMetrics
from pilothouse.controllers.nodelifecycle.tainter import NodeSyncs, NodeTainter
from pilothouse.controllers.nodelifecycle.zones import Change, Zones, zone_health, zone_key
from pilothouse.controllers.pod_index import PODS_BY_NODE, index_pods_by_node
from pilothouse.controllers.resources import LEASES, NODES, PODS
from pilothouse.kinds.conditions import find_condition
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of, part, uid_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import format_time

logger = logging.getLogger(__name__)

_NODE_LEASES = ObjectSelection(namespace="kube-node-lease")
_EXCLUDED = "node.kubernetes.io/exclude-disruption"
_POD_WORKERS = 4
_TRIES = 5
_PODS = "node_lifecycle_controller_pods"


async def run(context: ControllerContext) -> None:
    await _NodeLifecycle(context).run()


class _NodeLifecycle:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._config, self._clock = context.config.node_lifecycle, context.clock
        self._nodes, self._leases = context.informer(NODES), context.informer(LEASES, _NODE_LEASES)
        self._pods = context.informer(PODS)
        index_pods_by_node(self._pods)
        self._pod_queue = context.queue(_PODS, str)
        self._node_syncs = NodeSyncs(context)
        self._recorder = EventRecorder(context.client, EventSource("node-controller"), clock=self._clock)
        self._metrics = metrics_in(context.registry, NodeLifecycleMetrics)
        self._zones = Zones(self._config, self._clock)
        self._tainter = NodeTainter(context, self._zones)
        self._known: dict[str, Json] = {}
        self._healths: dict[str, NodeHealth] = {}
        self._to_mark_again: set[str] = set()
        """Nodes with pods that could not be marked not ready."""

    async def run(self) -> None:
        self._pods.add_event_handler(
            ResourceEventHandlerFuncs(add=lambda pod: self._pod_changed(None, pod), update=self._pod_changed)
        )
        pods = Controller(
            _PODS, self._sync_pod, caches=(self._pods,), workers=_POD_WORKERS, queue=self._pod_queue, clock=self._clock
        )
        async with asyncio.TaskGroup() as tasks:
            for running in (self._node_syncs.run(), pods.run(), self._recorder.run()):
                tasks.create_task(running)
            await wait_for_cache_sync(self._leases, self._nodes, self._pods)
            tasks.create_task(self._tainter.run())
            tasks.create_task(until(self._monitor, self._config.node_monitor_period, clock=self._clock))

    def _pod_changed(self, old: Json | None, new: Json) -> None:
        """Enqueue a pod that was just bound to a down node, to mark it not ready."""
        node = part(new, "spec").get("nodeName")
        if node and (old is None or part(old, "spec").get("nodeName") != node) and self._is_down(node):
            self._pod_queue.add(meta_namespace_key(new))

    def _is_down(self, node: str) -> bool:
        health = self._healths.get(node)
        return health is not None and health.ready is not None and health.ready.get("status") != "True"

    async def _sync_pod(self, key: str) -> None:
        pod = self._pods.indexer.get_by_key(key)
        if pod is not None and self._is_down(pod["spec"].get("nodeName") or ""):
            await mark_pods_not_ready(self._context.client, self._recorder, (pod,), utc_now(self._clock))

    async def _monitor(self) -> None:
        start, nodes = self._clock.now(), self._nodes.indexer.list()
        present = {name_of(node): node for node in nodes}
        for name, node in present.items():
            if name not in self._known:
                self._node_event(node, "RegisteredNode", f"Registered Node {name} in Controller")
                await self._tainter.mark_reachable(node)
        for name in self._known.keys() - present.keys():
            self._node_event(self._known[name], "RemovingNode", f"Removing Node {name} from Controller")
            self._healths.pop(name, None)
            self._to_mark_again.discard(name)
            self._tainter.forget(name)
        self._known = present
        ready: dict[str, list[bool]] = defaultdict(list)
        async for node in yield_periodically(nodes):
            try:
                await self._check(node, ready)
            except NotFound:
                continue
            except StatusError as error:
                logger.error("can not update the health of node %s: %s", name_of(node), error)
        healths = {zone: zone_health(states, self._config) for zone, states in ready.items()}
        gone, change = self._zones.update(healths)
        for zone in gone:
            self._metrics.show(zone, None)
        for zone, health in healths.items():
            self._metrics.show(zone, health)
        if change is Change.ALL_DOWN:
            logger.info("no node is ready; none is emptied")
            for node in nodes:
                await self._tainter.mark_reachable(node)
        elif change is Change.SOME_UP:
            logger.info("some nodes are ready again")
            for known in self._healths.values():
                known.heard = self._clock.now()
        self._metrics.all_nodes.observe((), self._clock.now() - start)

    async def _check(self, node: Json, ready: dict[str, list[bool]]) -> None:
        """Check the health of the node. Raises StatusError."""
        observed = find_condition(node, READY)
        node = await self._update_health(node)
        current = find_condition(node, READY)
        if _EXCLUDED not in labels_of(node):
            ready[zone_key(node)].append(current is not None and current.get("status") == "True")
        if current is None:
            return
        await self._tainter.taint_or_clear(node, current["status"])
        was_ready = observed is not None and observed.get("status") == "True"
        went_down = was_ready and current.get("status") != "True"
        if went_down:
            message = f"Node {name_of(node)} status is now: NodeNotReady"
            self._recorder.event(_reference(node), NORMAL, "NodeNotReady", message)
        if went_down or (name_of(node) in self._to_mark_again and not was_ready):
            await self._mark_pods(name_of(node))
        self._to_mark_again.discard(name_of(node))

    async def _mark_pods(self, node: str) -> None:
        """Mark the node's pods not ready. Raises StatusError."""
        self._to_mark_again.add(node)
        pods = self._pods.indexer.by_index(PODS_BY_NODE, node)
        await mark_pods_not_ready(self._context.client, self._recorder, pods, utc_now(self._clock))

    async def _update_health(self, node: Json) -> Json:
        """Return the node, with unknown conditions if unresponsive. Raises StatusError."""
        nodes = self._context.client.for_resource(NODES)
        for attempt in range(_TRIES):
            lease = self._leases.indexer.get_by_key(f"kube-node-lease/{name_of(node)}")
            health = observe(self._healths.get(name_of(node)), node, lease, self._clock)
            self._healths[name_of(node)] = health
            known = health.ready is not None and health.ready.get("status") == "Unknown"
            if known or not is_silent(health, self._config, self._clock.now()):
                return node
            try:
                node = await nodes.update_status(with_unknown_conditions(node, utc_now(self._clock)))
            except StatusError as error:
                if isinstance(error, NotFound) or attempt == _TRIES - 1:
                    raise
                node = await nodes.get(name_of(node))
                continue
            health.ready = find_condition(node, READY)
            return node
        return node

    def _node_event(self, node: Json, reason: str, message: str) -> None:
        self._recorder.event(_reference(node), NORMAL, reason, f"Node {name_of(node)} event: {message}")


def _reference(node: Json) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name_of(node), "uid": uid_of(node)}}


async def mark_pods_not_ready(client: Client, recorder: EventRecorder, pods: Iterable[Json], now: datetime) -> None:
    """Mark all pods not ready, continuing after errors. Raises the last StatusError."""
    failure: StatusError | None = None
    for pod in pods:
        changed = not_ready(pod, now)
        if changed is None:
            continue
        try:
            await client.for_resource(PODS, namespace=namespace_of(pod)).update_status(changed)
        except NotFound:
            continue
        except StatusError as error:
            failure = error
        recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")
    if failure is not None:
        raise failure


def not_ready(pod: Json, now: datetime) -> Json | None:
    """Return the pod with Ready set to False; None if already False or absent."""
    status = pod.get("status") or {}
    conditions = [*(status.get("conditions") or ())]
    for index, condition in enumerate(conditions):
        if condition["type"] == "Ready" and condition.get("status") != "False":
            conditions[index] = condition | {"status": "False", "lastTransitionTime": format_time(now)}
            return {**pod, "status": {**status, "conditions": conditions}}
    return None

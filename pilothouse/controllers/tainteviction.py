"""taint-eviction-controller: deletes pods that do not, or no longer, tolerate a NoExecute taint of their node."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry

from pilothouse.apiserver.tallies import CounterTally, HistogramTally
from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.clock import Timer
from pilothouse.client.controller import Controller
from pilothouse.client.events.event import NORMAL, EventSource, timestamp
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.options import PatchType
from pilothouse.controllers.context import ControllerContext, metrics_in, with_last_state
from pilothouse.controllers.pod_index import PODS_BY_NODE, index_pods_by_node
from pilothouse.controllers.resources import NODES, PODS
from pilothouse.kinds.pods import node_name
from pilothouse.kinds.tolerations import matching_tolerations
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, items, metadata, name_of, uid_of

logger = logging.getLogger(__name__)

_NAME = "taint-eviction-controller"
_WORKERS = 8
_TRIES = 5
_CONDITION: Json = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class _Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.deletions = CounterTally(
            "taint_eviction_controller_pod_deletions",
            "Total number of Pods deleted by TaintEvictionController since its start.",
            (),
            registry=registry,
        )
        self.latency = HistogramTally(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a taint effect has been activated for the Pod and its"
            " deletion via TaintEvictionController.",
            (),
            bounds=(0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240),
            registry=registry,
        )


@dataclass(slots=True)
class _Eviction:
    since: float
    due: float
    timer: Timer | None = None
    """None once due."""


async def run(context: ControllerContext) -> None:
    await _TaintEviction(context).run()


class _TaintEviction:
    _tainted: dict[str, list[Json]]  # nodes with NoExecute taints → taints
    _evictions: dict[str, _Eviction]  # scheduled or running deletions by pod key

    def __init__(self, context: ControllerContext) -> None:
        self._context, self._clock = context, context.clock
        self._pods, self._nodes = context.informer(PODS), context.informer(NODES)
        index_pods_by_node(self._pods)
        self._queue = context.queue("taint_eviction", str)
        self._recorder = EventRecorder(context.client, EventSource(_NAME), clock=self._clock)
        self._metrics = metrics_in(context.registry, _Metrics)
        self._tainted = {}
        self._evictions = {}

    async def run(self) -> None:
        self._nodes.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._node_added,
                update=self._node_updated,
                delete=self._node_deleted,
            )
        )
        self._pods.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._pod_added,
                update=self._pod_updated,
                delete=with_last_state(lambda pod: self._cancel(meta_namespace_key(pod))),
            )
        )
        caches = (self._pods, self._nodes)
        evicting = Controller(
            _NAME,
            self._evict,
            caches=caches,
            workers=_WORKERS,
            queue=self._queue,
            max_retries=_TRIES - 1,
            clock=self._clock,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(evicting.run())
                tasks.create_task(self._recorder.run())
        finally:
            for eviction in self._evictions.values():
                if eviction.timer is not None:
                    eviction.timer.cancel()

    def _node_added(self, node: Json) -> None:
        if taints := _no_execute(node):
            self._taints_changed(name_of(node), taints)

    def _node_updated(self, old: Json, new: Json) -> None:
        if (taints := _no_execute(new)) != _no_execute(old):
            self._taints_changed(name_of(new), taints)

    def _node_deleted(self, node: Deleted) -> None:
        self._tainted.pop(deletion_handling_key(node), None)

    def _taints_changed(self, node: str, taints: list[Json]) -> None:
        if taints:
            self._tainted[node] = taints
        else:
            self._tainted.pop(node, None)
        for pod in self._pods.indexer.by_index(PODS_BY_NODE, node):
            self._decide(pod, taints)

    def _pod_added(self, pod: Json) -> None:
        if taints := self._tainted.get(node_name(pod)):
            self._decide(pod, taints)

    def _pod_updated(self, old: Json, new: Json) -> None:
        if uid_of(old) != uid_of(new):
            self._cancel(meta_namespace_key(new))
        before, after = old.get("spec") or {}, new.get("spec") or {}
        if any(before.get(field) != after.get(field) for field in ("nodeName", "tolerations")):
            self._pod_added(new)

    def _decide(self, pod: Json, taints: Sequence[Json]) -> None:
        """Schedule, keep or cancel the pod's eviction according to the node's taints."""
        key, now = meta_namespace_key(pod), self._clock.now()
        if not taints:
            self._cancel(key)
            return
        used = matching_tolerations(taints, items(pod, "spec", "tolerations"))
        seconds = 0.0 if used is None else tolerated_seconds(used)
        if seconds == math.inf:
            self._cancel(key)
            return
        since, planned = now, self._evictions.get(key)
        if planned is not None and used is not None:
            since = planned.since
            if since + seconds < now + seconds:
                return
        self._cancel(key)
        due = since + seconds
        if key in self._evictions:
            return
        eviction = self._evictions[key] = _Eviction(since, due)
        if due <= since:
            self._queue.add(key)
        else:
            eviction.timer = self._clock.call_later(due - since, lambda: self._is_due(key, eviction))

    def _is_due(self, key: str, eviction: _Eviction) -> None:
        eviction.timer = None
        self._queue.add(key)

    def _cancel(self, key: str) -> None:
        """Cancel a scheduled eviction; a started deletion continues."""
        eviction = self._evictions.pop(key, None)
        if eviction is not None and eviction.timer is not None:
            eviction.timer.cancel()
            self._recorder.event(_reference(key), NORMAL, "TaintManagerEviction", f"Cancelling deletion of Pod {key}")

    async def _evict(self, key: str) -> None:
        eviction = self._evictions.get(key)
        if self._queue.num_requeues(key) == 0:
            self._recorder.event(_reference(key), NORMAL, "TaintManagerEviction", f"Marking for deletion Pod {key}")
        try:
            namespace, _, name = key.partition("/")
            pods = self._context.client.for_resource(PODS, namespace=namespace)
            pod = await pods.get(name)
            conditions = items(pod, "status", "conditions")
            if not any(_CONDITION.items() <= condition.items() for condition in conditions):
                condition = {**_CONDITION, "lastTransitionTime": timestamp(self._clock.wall())}
                if generation := metadata(pod).get("generation"):
                    condition["observedGeneration"] = generation
                others = [condition["type"] for condition in items(pod, "status", "conditions")]
                order = [{"type": kind} for kind in dict.fromkeys((*others, condition["type"]))]
                status = {"conditions": [condition], "$setElementOrder/conditions": order}
                await pods.patch(
                    name,
                    {"metadata": {"uid": uid_of(pod)}, "status": status},
                    PatchType.STRATEGIC,
                    subresource="status",
                )
            await pods.delete(name)
        except NotFound:
            return
        finally:
            self._evictions.pop(key, None)
        self._metrics.deletions.inc()
        if eviction is not None:
            self._metrics.latency.observe((), self._clock.now() - eviction.due)


def tolerated_seconds(used: Iterable[Json]) -> float:
    """Return the minimum tolerationSeconds; infinity without a limit."""
    limits = [toleration["tolerationSeconds"] for toleration in used if toleration.get("tolerationSeconds") is not None]
    return max(0.0, float(min(limits))) if limits else math.inf


def _no_execute(node: Json) -> list[Json]:
    taints = items(node, "spec", "taints")
    return [taint for taint in taints if taint.get("effect") == "NoExecute"]


def _reference(key: str) -> Json:
    namespace, _, name = key.partition("/")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}}

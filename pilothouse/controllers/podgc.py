"""pod-garbage-collector-controller: deletes old terminated pods, and pods that no other component can delete.

Deleted pods: the oldest terminated pods above a threshold; terminating pods on out-of-service nodes; pods of deleted
nodes; unscheduled terminating pods.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client import CollectorRegistry

from pilothouse.apiserver.tallies import CounterTally
from pilothouse.client.cache.shared_informer import wait_for_cache_sync
from pilothouse.client.events.event import timestamp
from pilothouse.client.rest.options import DeleteOptions, PatchType
from pilothouse.client.wait import until
from pilothouse.controllers.context import ControllerContext, metrics_in
from pilothouse.controllers.resources import NODES, PODS
from pilothouse.kinds import nodes
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import has_ended, node_name
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of, uid_of
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class _PodGCMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("namespace", "reason")
        self.deletions = CounterTally(
            "pod_gc_collector_force_delete_pods",
            "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
            labels,
            registry=registry,
        )
        self.errors = CounterTally(
            "pod_gc_collector_force_delete_pod_errors",
            "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.",
            labels,
            registry=registry,
        )


async def run(context: ControllerContext) -> None:
    collector = _Collector(context)
    await collector.wait_synced()
    await until(collector.collect, context.config.pod_gc_check_period, clock=context.clock)


class _Collector:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._pods, self._nodes = context.informer(PODS), context.informer(NODES)
        self._metrics = metrics_in(context.registry, _PodGCMetrics)
        self._missing: dict[str, float] = {}
        """Time since each node of a pod has been missing in the cache."""

    async def wait_synced(self) -> None:
        await wait_for_cache_sync(self._pods, self._nodes)

    async def collect(self) -> None:
        pods = self._pods.indexer.list()
        await self._delete(self._too_many_ended(pods), "terminated")
        await self._delete(sorted(filter(self._is_out_of_service, pods), key=_order), "out-of-service")
        now, quarantine = self._context.clock.now(), self._context.config.pod_gc_quarantine
        missing = {node_name(pod) for pod in pods} - {"", *self._nodes.indexer.list_keys()}
        self._missing = {name: self._missing.get(name, now) for name in missing}
        due = [name for name, since in self._missing.items() if now - since >= quarantine]
        # The cache may be stale: confirm with the server.
        gone = {name for name in due if not await self._exists(name)}
        condition: Json = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
        }
        await self._delete((pod for pod in pods if node_name(pod) in gone), "orphaned", condition)
        await self._delete((pod for pod in pods if is_deleting(pod) and not node_name(pod)), "unscheduled")

    def _too_many_ended(self, pods: list[Json]) -> list[Json]:
        threshold = self._context.config.terminated_pod_gc_threshold
        ended = [pod for pod in pods if has_ended(pod)]
        if threshold <= 0 or len(ended) <= threshold:
            return []
        return sorted(ended, key=_order)[: len(ended) - threshold]

    def _is_out_of_service(self, pod: Json) -> bool:
        node = self._nodes.indexer.get_by_key(node_name(pod)) if is_deleting(pod) else None
        return node is not None and not nodes.is_ready(node) and nodes.has_taint_key(node, _OUT_OF_SERVICE)

    async def _exists(self, node: str) -> bool:
        try:
            await self._context.client.for_resource(NODES).get(node)
        except NotFound:
            return False
        except StatusError as error:
            logger.error("Error while getting node %s: %s", node, error)
        return True

    async def _delete(self, pods: Iterable[Json], reason: str, condition: Json | None = None) -> None:
        for pod in pods:
            namespace = namespace_of(pod)
            logger.info("PodGC is force deleting Pod %s/%s (%s)", namespace, name_of(pod), reason)
            self._metrics.deletions.inc((namespace, reason))
            try:
                await self._fail_and_delete(pod, condition)
            except NotFound:
                continue
            except StatusError as error:
                logger.error("Failed to delete pod %s/%s: %s", namespace, name_of(pod), error)
                self._metrics.errors.inc((namespace, reason))

    async def _fail_and_delete(self, pod: Json, condition: Json | None) -> None:
        """Set the pod's phase to Failed in place of its kubelet, then delete the pod."""
        pods = self._context.client.for_resource(PODS, namespace=namespace_of(pod))
        if not has_ended(pod):
            generation = metadata(pod).get("generation")
            status: Json = {"phase": "Failed", "observedGeneration": generation}
            if condition is not None:
                since = timestamp(self._context.clock.wall())
                applied = {**condition, "lastTransitionTime": since, "observedGeneration": generation}
                status["conditions"] = [applied]
            patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
            await pods.patch(name_of(pod), patch, PatchType.STRATEGIC, subresource="status")
        await pods.delete(name_of(pod), DeleteOptions(grace_period_seconds=0))


def _order(pod: Json) -> tuple[bool, str, str]:
    """Sort key of deletion: evicted pods first, then oldest first."""
    status = pod.get("status") or {}
    evicted = status.get("phase") == "Failed" and status.get("reason") == "Evicted"
    return not evicted, metadata(pod).get("creationTimestamp") or "", name_of(pod)

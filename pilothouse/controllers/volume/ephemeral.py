"""ephemeral-volume-controller: creates claims for ephemeral volumes, with the lifetime of their pods."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry

from pilothouse.apiserver.tallies import CounterTally
from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.controller import Controller
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.context import ControllerContext, metrics_in
from pilothouse.controllers.pod_index import PODS_BY_CLAIM, index_pods_by_claim
from pilothouse.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.kinds.references import ephemeral_claim_name
from pilothouse.machinery.objects import Json, items, name_of, namespace_of, uid_of
from pilothouse.machinery.status_error import PilothouseError, StatusError

_NAME = "ephemeral_volume"


class _NotOfThePod(PilothouseError):
    """A claim with the required name exists but does not belong to the pod."""


class _Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempts = CounterTally(
            "ephemeral_volume_controller_create",
            "Number of PersistentVolumeClaim creation requests",
            (),
            registry=registry,
        )
        self.failures = CounterTally(
            "ephemeral_volume_controller_create_failures",
            "Number of PersistentVolumeClaim creation request failures",
            (),
            registry=registry,
        )


async def run(context: ControllerContext) -> None:
    await _EphemeralVolumes(context).run()


class _EphemeralVolumes:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = context.queue(_NAME, str)
        self._pods, self._claims = context.informer(PODS), context.informer(PERSISTENT_VOLUME_CLAIMS)
        index_pods_by_claim(self._pods)
        self._recorder = EventRecorder(context.client, EventSource(_NAME), clock=context.clock)
        self._metrics = metrics_in(context.registry, _Metrics)

    async def run(self) -> None:
        self._pods.add_event_handler(ResourceEventHandlerFuncs(add=self._enqueue))
        self._claims.add_event_handler(ResourceEventHandlerFuncs(delete=self._claim_deleted))
        caches, clock = (self._pods, self._claims), self._context.clock
        workers = self._context.config.concurrent_ephemeralvolume_syncs
        claims = Controller(_NAME, self._sync, caches=caches, workers=workers, queue=self._queue, clock=clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(claims.run())
            tasks.create_task(self._recorder.run())

    def _enqueue(self, pod: Json) -> None:
        volumes = items(pod, "spec", "volumes")
        if any(volume.get("ephemeral") for volume in volumes) and not is_deleting(pod):
            self._queue.add(meta_namespace_key(pod))

    def _claim_deleted(self, deleted: Deleted) -> None:
        for pod in self._pods.indexer.by_index(PODS_BY_CLAIM, deletion_handling_key(deleted)):
            self._enqueue(pod)

    async def _sync(self, key: str) -> None:
        pod = self._pods.indexer.get_by_key(key)
        if pod is None or is_deleting(pod):
            return
        for volume in pod["spec"].get("volumes") or ():
            if not volume.get("ephemeral"):
                continue
            try:
                name, namespace = ephemeral_claim_name(pod, volume), namespace_of(pod)
                claim = self._claims.indexer.get_by_key(f"{namespace}/{name}")
                if claim is None:
                    self._metrics.attempts.inc()
                    claims = self._context.client.for_resource(PERSISTENT_VOLUME_CLAIMS, namespace=namespace)
                    try:
                        await claims.create(new_claim(pod, volume))
                    except StatusError:
                        self._metrics.failures.inc()
                        raise
                elif not is_controlled_by(claim, pod):
                    pod_key = f"{namespace}/{name_of(pod)}"
                    raise _NotOfThePod(f"PVC {namespace}/{name} was not created for pod {pod_key} (pod is not owner)")
            except (_NotOfThePod, StatusError) as error:
                message = f"ephemeral volume {volume['name']}: {error}"
                self._recorder.event(pod, WARNING, "FailedBinding", message)
                raise


def new_claim(pod: Json, volume: Json) -> Json:
    template = volume["ephemeral"]["volumeClaimTemplate"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)}
    meta: Json = {
        "name": ephemeral_claim_name(pod, volume),
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    for kind in ("labels", "annotations"):
        if given := (template.get("metadata") or {}).get(kind):
            meta[kind] = given
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}

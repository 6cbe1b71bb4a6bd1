"""Assembly and start of the scheduler."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.shared_informer import SharedIndexInformer, wait_for_cache_sync
from pilothouse.controllers import resources
from pilothouse.controllers.context import ControllerContext
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.scheduler.cluster_events import Subject
from pilothouse.scheduler.framework import Framework
from pilothouse.scheduler.informers import ClusterState
from pilothouse.scheduler.plugins.handle import Handle, Listers
from pilothouse.scheduler.pod_writer import PodWriter, SchedulerEvents
from pilothouse.scheduler.preemption.preemption import Preemption
from pilothouse.scheduler.queue.scheduling_queue import QueueingHints, SchedulingQueue
from pilothouse.scheduler.scheduler import Scheduler

Informers: TypeAlias = dict[str, SharedIndexInformer]

_STORAGE, _DEVICES = "storage.k8s.io", "resource.k8s.io"
_LISTED = {
    "pods": resources.PODS,
    "namespaces": resources.NAMESPACES,
    "services": resources.SERVICES,
    "replication_controllers": GroupVersionResource("", "v1", "replicationcontrollers"),
    "replica_sets": resources.REPLICA_SETS,
    "stateful_sets": GroupVersionResource("apps", "v1", "statefulsets"),
    "disruption_budgets": resources.POD_DISRUPTION_BUDGETS,
    "claims": resources.PERSISTENT_VOLUME_CLAIMS,
    "volumes": resources.PERSISTENT_VOLUMES,
    "storage_classes": GroupVersionResource(_STORAGE, "v1", "storageclasses"),
    "csi_nodes": GroupVersionResource(_STORAGE, "v1", "csinodes"),
    "csi_drivers": GroupVersionResource(_STORAGE, "v1", "csidrivers"),
    "csi_storage_capacities": GroupVersionResource(_STORAGE, "v1", "csistoragecapacities"),
    "volume_attachments": GroupVersionResource(_STORAGE, "v1", "volumeattachments"),
    "resource_claims": GroupVersionResource(_DEVICES, "v1", "resourceclaims"),
    "resource_slices": GroupVersionResource(_DEVICES, "v1", "resourceslices"),
    "device_classes": GroupVersionResource(_DEVICES, "v1", "deviceclasses"),
}
_SUBJECTS = {
    "claims": Subject.PERSISTENT_VOLUME_CLAIM,
    "volumes": Subject.PERSISTENT_VOLUME,
    "storage_classes": Subject.STORAGE_CLASS,
    "csi_nodes": Subject.CSI_NODE,
    "csi_drivers": Subject.CSI_DRIVER,
    "csi_storage_capacities": Subject.CSI_STORAGE_CAPACITY,
    "volume_attachments": Subject.VOLUME_ATTACHMENT,
    "resource_claims": Subject.RESOURCE_CLAIM,
    "resource_slices": Subject.RESOURCE_SLICE,
    "device_classes": Subject.DEVICE_CLASS,
}

_MAY_BE_MISSING = ("resource_claims", "resource_slices", "device_classes")


async def run(context: ControllerContext, *, seed: int | None = None) -> None:
    """Schedule pods until cancelled. A seed makes the choice between equal nodes reproducible."""
    informers = {name: context.informer(resource) for name, resource in _LISTED.items()}
    listers = Listers(**{name: informer.indexer for name, informer in informers.items()})
    handle = Handle(listers=listers, client=context.client, clock=context.clock, random=Random(seed))
    await _scheduler(context, handle, informers)


async def _scheduler(context: ControllerContext, handle: Handle, informers: Informers) -> None:
    framework = Framework(handle)
    queue = SchedulingQueue(framework.pre_enqueue, QueueingHints(framework.event_hints()), context.clock)
    state = ClusterState(handle, queue)
    writer, events = PodWriter(context.client), SchedulerEvents(context.client, context.clock)
    preemption = Preemption(framework, queue, writer, events)
    registrations = [context.informer(resources.NODES).add_event_handler(state.nodes())]
    for name, informer in informers.items():
        handler = _handler(state, name)
        registration = informer.add_event_handler(handler) if handler is not None else None
        # Do not wait for APIs that may not be served, such as ResourceClaims; pods with claims wait until the claims
        # are listed.
        if registration is not None and name not in _MAY_BE_MISSING:
            registrations.append(registration)
    awaited = (informer for name, informer in informers.items() if name not in _MAY_BE_MISSING)
    await wait_for_cache_sync(*awaited, *registrations)
    await Scheduler(framework, queue, writer, events, preemption).run()


def _handler(state: ClusterState, name: str) -> ResourceEventHandlerFuncs | None:
    if name == "pods":
        return state.pods()
    if name == "namespaces":
        return state.namespaces()
    return state.others(_SUBJECTS[name]) if name in _SUBJECTS else None

"""endpointslice-controller: maintains EndpointSlices for services with selectors."""

from __future__ import annotations

import asyncio

from pilothouse.client.cache.handlers import Deleted, ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.context import ControllerContext, metrics_in
from pilothouse.controllers.endpointslice.endpoint import ZONE_LABEL
from pilothouse.controllers.endpointslice.metrics import ServiceSliceMetrics
from pilothouse.controllers.endpointslice.reconciler import CONTROLLER, ReconcileFailed, Reconciler
from pilothouse.controllers.endpointslice.service_syncs import MAX_RETRIES, STALE, ServiceSyncs, has_endpoints_of_pods
from pilothouse.controllers.endpointslice.slice_tracker import EndpointSliceTracker, SliceEvents
from pilothouse.controllers.endpointslice.writer import SliceWriter
from pilothouse.controllers.resources import ENDPOINT_SLICES, NODES
from pilothouse.kinds import nodes
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of

NAME = "endpoint_slice"
_AFTER_FOREIGN_CHANGE = 1.0


async def run(context: ControllerContext) -> None:
    await _EndpointSlices(context).run()


class _EndpointSlices:
    _waiting_for: dict[str, set[str]]  # missing node → services that excluded its pods

    def __init__(self, context: ControllerContext) -> None:
        config, clock = context.config.endpoints, context.clock
        self._config, self._clock = config, clock
        self._queue = context.queue(NAME, str, first_delay=1.0)
        self._syncs = ServiceSyncs(context, self._queue, batch_period=config.endpointslice_updates_batch_period)
        self._slices, self._nodes = context.informer(ENDPOINT_SLICES), context.informer(NODES)
        self._recorder = EventRecorder(context.client, EventSource("endpoint-slice-controller"), clock=clock)
        self._metrics = metrics_in(context.registry, ServiceSliceMetrics)
        self._tracker = EndpointSliceTracker()
        self._events = SliceEvents(CONTROLLER, self._slices, self._tracker)
        self._waiting_for = {}
        self._reconciler = Reconciler(
            SliceWriter(context.client, self._tracker, self._metrics.changes, "Service"),
            self._nodes.indexer,
            self._metrics,
            limit=config.max_endpoints_per_slice,
            emit=lambda service, event: self._recorder.event(service, event.type, event.reason, event.message),
        )

    async def run(self) -> None:
        self._syncs.follow()
        self._slices.add_event_handler(
            self._events.handler(
                lambda key: self._queue.add_after(key, max(_AFTER_FOREIGN_CHANGE, self._syncs.delay(key)))
            )
        )
        nodes = self._nodes.add_event_handler(
            ResourceEventHandlerFuncs(add=self._node_added, update=self._node_changed, delete=self._node_deleted)
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._recorder.run())
            tasks.create_task(
                Controller(
                    NAME,
                    self._sync,
                    caches=(*self._syncs.caches, self._slices, nodes),
                    workers=self._config.concurrent_service_endpoint_syncs,
                    queue=self._queue,
                    max_retries=MAX_RETRIES,
                    clock=self._clock,
                ).run()
            )

    def _node_added(self, node: Json) -> None:
        for key in self._waiting_for.pop(name_of(node), ()):
            self._queue.add(key)
        self._reconciler.topology.zones.set_node(node)
        self._check_topology()

    def _node_changed(self, old: Json, new: Json) -> None:
        self._reconciler.topology.zones.set_node(new)
        zones = labels_of(old).get(ZONE_LABEL), labels_of(new).get(ZONE_LABEL)
        if nodes.is_ready(old) != nodes.is_ready(new) or zones[0] != zones[1]:
            self._check_topology()

    def _node_deleted(self, node: Deleted) -> None:
        self._reconciler.topology.zones.forget_node(deletion_handling_key(node))
        self._check_topology()

    def _check_topology(self) -> None:
        for key in self._reconciler.topology.overloaded_services():
            self._queue.add(key)

    async def _sync(self, key: str) -> Requeue | None:
        service = self._syncs.service(key)
        if service is None:
            self._syncs.forget(key)
            self._reconciler.forget(key)
            self._tracker.forget(key)
            for waiting in self._waiting_for.values():
                waiting.discard(key)
            return None
        if not has_endpoints_of_pods(service):
            return None
        slices = self._events.slices_of(key)
        if self._tracker.is_stale(key, slices):
            self._metrics.syncs.labels("stale").inc()
            return Requeue(STALE)
        existing = [endpoint_slice for endpoint_slice in slices if not is_deleting(endpoint_slice)]
        with self._syncs.timed(key):
            selected = self._syncs.selected_pods(service)
            trigger_time = self._syncs.trigger_time(service, selected)
            try:
                await self._reconciler.reconcile(service, selected, existing, trigger_time)
            except ReconcileFailed as error:
                self._metrics.syncs.labels("error").inc()
                for node in error.missing_nodes:
                    self._waiting_for.setdefault(node, set()).add(key)
                about = (
                    f"Error updating Endpoint Slices for Service {namespace_of(service)}/{name_of(service)}: {error}"
                )
                self._recorder.event(service, WARNING, "FailedToUpdateEndpointSlices", about)
                raise
            self._metrics.syncs.labels("success").inc()
        return None

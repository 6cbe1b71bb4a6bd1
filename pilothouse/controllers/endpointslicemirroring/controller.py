"""endpointslicemirroring-controller: mirrors Endpoints of services without selector to EndpointSlices.

Endpoints with the skip-mirror label and leader election locks are excluded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.context import ControllerContext, metrics_in, with_last_state
from pilothouse.controllers.endpoint.controller import LEADER_ANNOTATION
from pilothouse.controllers.endpointslice.service_syncs import MAX_RETRIES, STALE, selector_of
from pilothouse.controllers.endpointslice.slice_tracker import EndpointSliceTracker, SliceEvents
from pilothouse.controllers.endpointslice.writer import SliceWriter
from pilothouse.controllers.endpointslicemirroring.reconciler import CONTROLLER, MirroringMetrics, MirroringReconciler
from pilothouse.controllers.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json, annotations_of, labels_of

NAME = "endpoint_slice_mirroring"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"


async def run(context: ControllerContext) -> None:
    await _Mirroring(context).run()


class _Mirroring:
    def __init__(self, context: ControllerContext) -> None:
        self._config, self._clock = context.config.endpoints, context.clock
        self._queue = context.queue(NAME, str, first_delay=1.0, max_delay=100.0)
        self._endpoints, self._services = context.informer(ENDPOINTS), context.informer(SERVICES)
        self._slices = context.informer(ENDPOINT_SLICES)
        source = EventSource("endpoint-slice-mirroring-controller")
        self._recorder = EventRecorder(context.client, source, clock=context.clock)
        self._metrics = metrics_in(context.registry, MirroringMetrics)
        self._tracker = EndpointSliceTracker()
        self._events = SliceEvents(CONTROLLER, self._slices, self._tracker)
        self._reconciler = MirroringReconciler(
            SliceWriter(context.client, self._tracker, self._metrics.changes, "Endpoints"),
            self._metrics,
            limit=self._config.mirroring_max_endpoints_per_subset,
            warn=lambda endpoints, reason, message: self._recorder.event(endpoints, WARNING, reason, message),
        )

    async def run(self) -> None:
        self._endpoints.add_event_handler(_on_change_of(should_mirror, self._enqueue))
        self._services.add_event_handler(_on_change_of(lambda service: not selector_of(service), self._enqueue))
        batch_period = self._config.mirroring_endpointslice_updates_batch_period
        self._slices.add_event_handler(self._events.handler(lambda key: self._queue.add_after(key, batch_period)))
        controller = Controller(
            NAME,
            self._sync,
            caches=(self._endpoints, self._slices, self._services),
            workers=self._config.mirroring_concurrent_service_endpoint_syncs,
            queue=self._queue,
            max_retries=MAX_RETRIES,
            clock=self._clock,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._recorder.run())
            tasks.create_task(controller.run())

    def _enqueue(self, obj: Json) -> None:
        self._queue.add(meta_namespace_key(obj))

    async def _sync(self, key: str) -> Requeue | None:
        started = self._clock.now()
        try:
            endpoints, service = self._endpoints.indexer.get_by_key(key), self._services.indexer.get_by_key(key)
            existing = self._events.slices_of(key)
            if endpoints is None or not should_mirror(endpoints) or service is None or selector_of(service):
                self._tracker.forget(key)
                await self._reconciler.delete(key, existing)
                return None
            if self._tracker.is_stale(key, existing):
                return Requeue(STALE)
            present = [endpoint_slice for endpoint_slice in existing if not is_deleting(endpoint_slice)]
            await self._reconciler.reconcile(endpoints, present)
            return None
        finally:
            self._metrics.duration.observe(self._clock.now() - started)


def should_mirror(endpoints: Json) -> bool:
    return labels_of(endpoints).get(SKIP_MIRROR) != "true" and LEADER_ANNOTATION not in annotations_of(endpoints)


def _on_change_of(counts: Callable[[Json], bool], enqueue: Callable[[Json], None]) -> ResourceEventHandlerFuncs:
    """Return a handler that enqueues objects matching `counts` before or after the change."""

    def on_add(obj: Json) -> None:
        if counts(obj):
            enqueue(obj)

    def on_update(old: Json, new: Json) -> None:
        if counts(old) or counts(new):
            enqueue(new)

    return ResourceEventHandlerFuncs(add=on_add, update=on_update, delete=with_last_state(on_add))

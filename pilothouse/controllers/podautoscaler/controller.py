"""horizontal-pod-autoscaler-controller: syncs every autoscaler each 15 seconds and scales its target."""

from __future__ import annotations

import asyncio
import logging

from pilothouse.apiserver.registry.metadata import generation_of
from pilothouse.apiserver.server.features import enabled
from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest_mapper import RESTMapper
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.podautoscaler.autoscaling import Autoscaling, AutoscalingFailed
from pilothouse.controllers.podautoscaler.metric_sources import MetricSources
from pilothouse.controllers.podautoscaler.pod_metrics import MetricsClient
from pilothouse.controllers.podautoscaler.pod_use import PodUse
from pilothouse.controllers.podautoscaler.proposals import Proposals
from pilothouse.controllers.podautoscaler.scale_target import ScaleTargets
from pilothouse.controllers.resources import HORIZONTAL_POD_AUTOSCALERS, PODS
from pilothouse.machinery import version_rules
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, namespace_of, without_empty
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_NAME = "horizontalpodautoscaler"


async def run(context: ControllerContext) -> None:
    await _HorizontalController(context).run()


class _HorizontalController:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._period = context.config.autoscaler.sync_period
        self._autoscalers, self._pods = context.informer(HORIZONTAL_POD_AUTOSCALERS), context.informer(PODS)
        self._queue = context.queue(_NAME, str)
        self._recorder = EventRecorder(context.client, EventSource("horizontal-pod-autoscaler"), clock=context.clock)
        mapper = RESTMapper(DiscoveryClient(context.client))
        config, clock = context.config.autoscaler, context.clock
        use = PodUse(self._pods, config, clock)
        proposals = Proposals(MetricSources(MetricsClient(context.client, mapper), use), use, self._recorder)
        targets = ScaleTargets(context.client, mapper)
        self._autoscaling = Autoscaling(proposals, targets, self._recorder, config, clock)
        self._autoscalers.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._added,
                update=self._updated,
                delete=lambda gone: self._autoscaling.forget(deletion_handling_key(gone)),
            )
        )

    async def run(self) -> None:
        autoscalers = Controller(
            _NAME,
            self._sync,
            caches=(self._autoscalers, self._pods),
            workers=self._context.config.autoscaler.concurrent_syncs,
            queue=self._queue,
            clock=self._context.clock,
        )
        async with asyncio.TaskGroup() as tasks:
            for running in (autoscalers.run(), self._recorder.run()):
                tasks.create_task(running)

    def _added(self, autoscaler: Json) -> None:
        if version_rules.holds("PromptAutoscalers"):
            self._queue.add(meta_namespace_key(autoscaler))
        else:
            self._enqueue(autoscaler)

    def _updated(self, old: Json, new: Json) -> None:
        """Sync at once after a change of the spec. Other changes are mostly the controller's own."""
        if enabled("HPAGeneration") and generation_of(old) != generation_of(new):
            self._added(new)
        else:
            self._enqueue(new)

    def _enqueue(self, autoscaler: Json) -> None:
        """Enqueue the autoscaler with the sync period as delay, so that it syncs once per period."""
        self._queue.add_after(meta_namespace_key(autoscaler), self._period)

    async def _sync(self, key: str) -> Requeue | None:
        autoscaler = self._autoscalers.indexer.get_by_key(key)
        if autoscaler is None:
            return None
        try:
            await self._scale(key, autoscaler)
        except (AutoscalingFailed, StatusError) as error:
            logger.info("%s: %s", key, error)
        return Requeue(self._period)

    async def _scale(self, key: str, autoscaler: Json) -> None:
        """Scale the target and write the status. Raises AutoscalingFailed or StatusError."""
        failed: AutoscalingFailed | None = None
        try:
            status = await self._autoscaling.scale(key, autoscaler)
        except AutoscalingFailed as error:
            status, failed = error.status, error
        if without_empty(status) != without_empty(autoscaler.get("status") or {}):
            await self._write(autoscaler, status)
        if failed is not None:
            raise failed

    async def _write(self, autoscaler: Json, status: Json) -> None:
        resource = self._context.client.for_resource(HORIZONTAL_POD_AUTOSCALERS, namespace=namespace_of(autoscaler))
        try:
            await resource.update_status({**autoscaler, "status": status})
        except NotFound:
            return
        except StatusError as error:
            self._recorder.event(autoscaler, WARNING, "FailedUpdateStatus", str(error))
            raise

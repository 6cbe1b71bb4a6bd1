"""endpoints-controller: maintains Endpoints for services with selectors."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import deletion_handling_key, meta_namespace_key, split_meta_namespace_key
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.events.event import WARNING, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.endpoint.desired import CONTROLLER, desired_subsets, endpoints_with, needs_update
from pilothouse.controllers.endpointslice.service_syncs import MAX_RETRIES, STALE, ServiceSyncs, has_endpoints_of_pods
from pilothouse.controllers.namespace_state import is_refusal_of_terminating_namespace
from pilothouse.controllers.resources import ENDPOINTS
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, annotations_of, name_of, namespace_of, resource_version_of
from pilothouse.machinery.status_error import StatusError

NAME = "endpoint"
LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
"""Annotation of Endpoints used as a leader election lock."""


async def run(context: ControllerContext) -> None:
    await _Endpoints(context).run()


class _Endpoints:
    _superseded: dict[str, str]  # last resourceVersion replaced by this process, by key

    def __init__(self, context: ControllerContext) -> None:
        config = context.config.endpoints
        self._clock, self._workers = context.clock, config.concurrent_endpoint_syncs
        self._client: ResourceClient = context.client.for_resource(ENDPOINTS)
        self._queue = context.queue(NAME, str)
        self._syncs = ServiceSyncs(context, self._queue, batch_period=config.endpoint_updates_batch_period)
        self._endpoints = context.informer(ENDPOINTS)
        self._recorder = EventRecorder(context.client, EventSource(CONTROLLER), clock=context.clock)
        self._superseded = {}

    async def run(self) -> None:
        self._syncs.follow()
        deleted = ResourceEventHandlerFuncs(delete=lambda obj: self._queue.add(deletion_handling_key(obj)))
        self._endpoints.add_event_handler(deleted)
        controller = Controller(
            NAME,
            self._sync,
            caches=(*self._syncs.caches, self._endpoints),
            workers=self._workers,
            queue=self._queue,
            max_retries=MAX_RETRIES,
            clock=self._clock,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._recorder.run())
            tasks.create_task(controller.run())
            tasks.create_task(self._check_leftovers())

    async def _check_leftovers(self) -> None:
        """Enqueue all Endpoints once, to delete those of services deleted while the controller was down."""
        await self._endpoints.wait_synced()
        for endpoints in self._endpoints.indexer.list():
            if LEADER_ANNOTATION not in annotations_of(endpoints):
                self._queue.add(meta_namespace_key(endpoints))

    async def _sync(self, key: str) -> Requeue | None:
        service = self._syncs.service(key)
        if service is None:
            named = split_meta_namespace_key(key)
            # The cache may lack recently created Endpoints.
            with suppress(NotFound):
                await self._client.namespace(named.namespace).delete(named.name)
            self._syncs.forget(key)
            self._superseded.pop(key, None)
            return None
        if not has_endpoints_of_pods(service):
            return None
        current = self._endpoints.indexer.get_by_key(key)
        if current is not None and self._superseded.get(key) == resource_version_of(current):
            return Requeue(STALE)
        with self._syncs.timed(key):
            selected = self._syncs.selected_pods(service)
            trigger_time = self._syncs.trigger_time(service, selected)
            subsets = await desired_subsets(service, selected)
            if current is None:
                await self._create(service, endpoints_with(None, subsets, service, trigger_time))
            elif needs_update(current, subsets, service):
                updated = await self._update(endpoints_with(current, subsets, service, trigger_time))
                if resource_version_of(updated) != resource_version_of(current):
                    self._superseded[key] = resource_version_of(current)
        return None

    async def _create(self, service: Json, endpoints: Json) -> None:
        try:
            await self._client.namespace(namespace_of(service)).create(endpoints)
        except StatusError as error:
            if is_refusal_of_terminating_namespace(error):
                return
            about = f"Failed to create endpoint for service {namespace_of(service)}/{name_of(service)}: {error}"
            namespaced = {**endpoints, "metadata": endpoints["metadata"] | {"namespace": namespace_of(service)}}
            self._recorder.event(namespaced, WARNING, "FailedToCreateEndpoint", about)
            raise

    async def _update(self, endpoints: Json) -> Json:
        try:
            return await self._client.namespace(namespace_of(endpoints)).update(endpoints)
        except StatusError as error:
            about = f"Failed to update endpoint {namespace_of(endpoints)}/{name_of(endpoints)}: {error}"
            self._recorder.event(endpoints, WARNING, "FailedToUpdateEndpoint", about)
            raise

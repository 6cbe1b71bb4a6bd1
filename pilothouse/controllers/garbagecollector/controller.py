"""garbage-collector-controller: deletes objects whose owners are gone, and applies propagation policies.

Resources are discovered at the start, every 30 seconds, and after each change of a CustomResourceDefinition or
APIService, as reported by the monitors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import cache

from prometheus_client import CollectorRegistry, Counter

from pilothouse.client.discovery import DiscoveryClient, ServerResources
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.garbagecollector.collector import Collector
from pilothouse.controllers.garbagecollector.graph_builder import GraphBuilder, GraphEvent
from pilothouse.controllers.garbagecollector.invalid_owners import InvalidOwnerReporter
from pilothouse.controllers.garbagecollector.monitors import GraphMonitors
from pilothouse.controllers.garbagecollector.operations import Operations
from pilothouse.controllers.garbagecollector.resources import KindMappings, deletable
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_INITIAL_SYNC_TIMEOUT = 30.0
_PERIOD = 30.0
_SETTLING = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Delays of repeated discovery after a change: served resources lag behind the write."""
_CHANGE_WHAT_IS_SERVED = frozenset({"CustomResourceDefinition", "APIService"})


async def run(context: ControllerContext) -> None:
    await GarbageCollector(context).run()


@cache
def sync_errors(registry: CollectorRegistry) -> Counter:
    return Counter(
        "garbagecollector_controller_resources_sync_error",
        "Number of garbage collector resources sync errors",
        registry=registry,
    )


class GarbageCollector:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._errors = sync_errors(context.registry)
        self._reporter = InvalidOwnerReporter(context.client, context.clock)
        self._builder = GraphBuilder(context.registry, context.clock, self._reporter)
        self._monitors = GraphMonitors(context.client, self._seen, context.clock)
        self._mappings = KindMappings()
        self._collector = Collector(self._builder, Operations(context.client, self._mappings))
        self._resources: dict[GroupVersionResource, GroupVersionKind] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        workers = range(self._context.config.concurrent_gc_syncs)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._builder.run())
                tasks.create_task(self._reporter.run())
                await self._initial_sync()
                tasks.create_task(self._sync_when_changed())
                for _ in workers:
                    tasks.create_task(self._collector.delete_worker())
                    tasks.create_task(self._collector.orphan_worker())
        finally:
            await self._monitors.stop()

    def _seen(self, event: GraphEvent) -> None:
        self._builder.changes.add(event)
        if event.identity.kind in _CHANGE_WHAT_IS_SERVED:
            self._changed.set()

    async def _initial_sync(self) -> None:
        """Sync the monitors with a timeout, so that unresponsive resources do not block the workers."""
        await self._sync()
        try:
            async with asyncio.timeout(_INITIAL_SYNC_TIMEOUT):
                await self._monitors.wait_synced()
        except TimeoutError:
            logger.info("Garbage collector: not all resource monitors could be synced, proceeding anyways")

    async def _sync_when_changed(self) -> None:
        delays: Iterator[float] = iter(() if self._resources else _SETTLING)
        while True:
            try:
                async with asyncio.timeout(next(delays, _PERIOD)):
                    await self._changed.wait()
                self._changed.clear()
                delays = iter(_SETTLING)
            except TimeoutError:
                await self._sync()

    async def _sync(self) -> None:
        try:
            found = await DiscoveryClient(self._context.client).server_resources()
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            logger.warning("no resources reported by discovery, skipping garbage collector sync: %s", error)
            self._errors.inc()
            return
        resources = deletable(found) | self._unreadable(found)
        self._mappings.replace(found)
        if resources != self._resources:
            self._resources = resources
            self._monitors.sync(resources)

    def _unreadable(self, found: ServerResources) -> dict[GroupVersionResource, GroupVersionKind]:
        """Return monitored resources whose groups failed discovery; they stay monitored."""
        return {
            resource: kind
            for resource, kind in self._resources.items()
            if resource.group_version in found.failed and self._monitors.is_synced(resource)
        }

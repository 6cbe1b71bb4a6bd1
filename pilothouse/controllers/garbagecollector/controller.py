"""garbage-collector-controller: deletes objects whose owners are gone, and applies propagation policies.

Resources are discovered at the start, every 30 seconds, and after each change of a CustomResourceDefinition or
APIService, as reported by the monitors.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from itertools import chain

from prometheus_client import CollectorRegistry, Counter

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.reflector import Reflector
from pilothouse.client.clock import Clock, cancelled
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.idleness import register_worker
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.garbagecollector import graph_builder
from pilothouse.controllers.garbagecollector.collector import Collector
from pilothouse.controllers.garbagecollector.graph import ObjectReference, ObjectState, identity_of
from pilothouse.controllers.garbagecollector.operations import KindMappings, Operations, deletable
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

logger = logging.getLogger(__name__)

_INITIAL_SYNC_TIMEOUT = 30.0
_PERIOD = 30.0
_SETTLING = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Delays of repeated discovery after a change: served resources lag behind the write."""
_CHANGE_WHAT_IS_SERVED = frozenset({"CustomResourceDefinition", "APIService"})
_RETIREMENT = 2.0
"""Seconds for which a no longer served resource stays monitored, to receive pending deletions."""


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
    name = "garbage-collector-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._errors = sync_errors(context.registry)
        self._reporter = graph_builder.InvalidOwnerReporter(context.client, context.clock)
        self._builder = graph_builder.GraphBuilder(context.registry, context.clock, self._reporter)
        self._monitors = GraphMonitors(context.client, self._seen, context.clock)
        self._mappings = KindMappings()
        self._collector = Collector(self._builder, Operations(context.client, self._mappings))
        self._resources: dict[GroupVersionResource, GroupVersionKind] = {}
        self._changed = asyncio.Event()
        self._lags = False  # the resources may be older than the last observed change

    def is_busy(self, within: float) -> bool:
        """Report whether a served resource may not be monitored yet."""
        return self._changed.is_set() or self._lags or self._monitors.are_behind

    async def run(self) -> None:
        """Run until cancelled."""
        register_worker(self)
        workers = range(self._context.config.concurrent_gc_syncs)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._builder.run())
                tasks.create_task(self._reporter.run())
                await self._sync()
                try:
                    # Unresponsive resources do not block the workers.
                    async with asyncio.timeout(_INITIAL_SYNC_TIMEOUT):
                        await self._monitors.wait_synced()
                except TimeoutError:
                    logger.info("Garbage collector: not all resource monitors could be synced, proceeding anyways")
                tasks.create_task(self._sync_when_changed())
                for _ in workers:
                    tasks.create_task(self._collector.delete_worker())
                    tasks.create_task(self._collector.orphan_worker())
        finally:
            self._changed.clear()
            self._lags = False
            await self._monitors.stop()

    def _seen(self, event: graph_builder.GraphEvent) -> None:
        self._builder.changes.add(event)
        if event.identity.kind in _CHANGE_WHAT_IS_SERVED:
            self._changed.set()

    async def _sync_when_changed(self) -> None:
        repeats, delays = 0, iter(() if self._resources else _SETTLING)
        while True:
            try:
                async with asyncio.timeout(next(delays, _PERIOD)):
                    await self._changed.wait()
                self._changed.clear()
                self._lags = True
                repeats, delays = len(_SETTLING), iter(_SETTLING)
            except TimeoutError:
                await self._sync()
                repeats -= 1
                self._lags = self._lags and repeats > 0 and self._misses_a_definition()

    def _misses_a_definition(self) -> bool:
        served = {f"{resource.resource}.{resource.group}" for resource in self._resources}
        return not served.issuperset(self._monitors.names_of("CustomResourceDefinition"))

    async def _sync(self) -> None:
        try:
            discovered = await DiscoveryClient(self._context.client).server_resources()
        except (StatusError, ConnectionFailed, InvalidResponse) as error:
            logger.warning("no resources reported by discovery, skipping garbage collector sync: %s", error)
            self._errors.inc()
            return
        # Resources whose groups failed discovery stay monitored.
        resources = deletable(discovered) | {
            resource: kind
            for resource, kind in self._resources.items()
            if resource.group_version in discovered.failed and self._monitors.is_synced(resource)
        }
        self._mappings.replace(discovered)
        if resources != self._resources:
            self._resources = resources
            self._monitors.sync(resources)


class GraphMonitor:
    """A monitor: watches one resource, metadata only, and sends every change to the graph builder.

    The monitor is its reflector's store. The store holds only the last uid per name. This suffices to detect deletions
    after a relist, and objects that were replaced under the same name.
    """

    _known: dict[str, ObjectReference]  # by key

    def __init__(self, kind: GroupVersionKind, emit: Callable[[graph_builder.GraphEvent], None]) -> None:
        self.kind = kind
        self._emit = emit
        self._known = {}
        self.synced = asyncio.Event()

    @property
    def names(self) -> Collection[str]:
        """Keys of the observed objects."""
        return self._known.keys()

    def add(self, obj: Json) -> None:
        key, identity = meta_namespace_key(obj), identity_of(self.kind, obj)
        before = self._known.setdefault(key, identity)
        if before != identity:
            self._emit(graph_builder.GraphEvent(before))
            self._known[key] = before = identity
        if len(obj["metadata"].get("ownerReferences") or ()) > graph_builder.MANY_OWNERS:
            self._emit(graph_builder.GraphEvent(before, unread=obj))
        else:
            self._emit(graph_builder.GraphEvent(before, ObjectState.of(obj)))

    update = add

    def delete(self, obj: Json) -> None:
        identity = self._known.pop(meta_namespace_key(obj), None)
        if identity is not None:
            self._emit(graph_builder.GraphEvent(identity))

    def replace(self, objects: list[Json]) -> None:
        gone = self._known.keys() - {meta_namespace_key(obj) for obj in objects}
        for key in gone:
            self._emit(graph_builder.GraphEvent(self._known.pop(key)))
        for obj in objects:
            self.add(obj)
        self.synced.set()

    def resync(self) -> None:
        """Ignore resyncs: the graph keeps all state."""


class GraphMonitors:
    def __init__(self, client: Client, emit: Callable[[graph_builder.GraphEvent], None], clock: Clock) -> None:
        self._client = client
        self._emit = emit
        self._clock = clock
        self._monitors: dict[GroupVersionResource, GraphMonitor] = {}
        self._reflectors: dict[GroupVersionResource, Reflector] = {}
        self._tasks: dict[GroupVersionResource, asyncio.Task[None]] = {}
        self._retired: set[asyncio.Task[None]] = set()

    def sync(self, resources: Mapping[GroupVersionResource, GroupVersionKind]) -> None:
        """Monitor exactly these resources."""
        for resource in self._monitors.keys() - resources.keys():
            del self._monitors[resource], self._reflectors[resource]
            retired = asyncio.create_task(self._retire(self._tasks.pop(resource)))
            self._retired.add(retired)
            retired.add_done_callback(self._retired.discard)
        for resource, kind in resources.items():
            if resource not in self._monitors:
                monitor = self._monitors[resource] = GraphMonitor(kind, self._emit)
                objects = self._client.for_resource(resource).metadata_only()
                reflector = Reflector(objects, monitor, name=f"garbage collector: {resource}", clock=self._clock)
                self._reflectors[resource] = reflector
                self._tasks[resource] = asyncio.create_task(reflector.run())

    @property
    def are_behind(self) -> bool:
        """Whether a monitor has not begun to watch, and its resource can be reached."""
        return any(reflector.is_behind for reflector in self._reflectors.values())

    def names_of(self, kind: str) -> Iterable[str]:
        """Yield the keys of the observed objects of a kind."""
        return chain.from_iterable(monitor.names for monitor in self._monitors.values() if monitor.kind.kind == kind)

    def is_synced(self, resource: GroupVersionResource) -> bool:
        monitor = self._monitors.get(resource)
        return monitor is not None and monitor.synced.is_set()

    async def wait_synced(self) -> None:
        for monitor in [*self._monitors.values()]:
            await monitor.synced.wait()

    async def stop(self) -> None:
        self._reflectors.clear()
        tasks = {*self._tasks.values(), *self._retired}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _retire(self, task: asyncio.Task[None]) -> None:
        try:
            await self._clock.sleep(_RETIREMENT)
        finally:
            await cancelled(task)

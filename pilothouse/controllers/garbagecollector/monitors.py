"""Monitors: each watches one resource, metadata only, and sends every change to the graph builder.

A monitor stores only the last uid per name. This suffices to detect deletions after a relist, and objects that were
replaced under the same name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.reflector import Reflector
from pilothouse.client.clock import Clock, cancelled
from pilothouse.client.rest.client import Client
from pilothouse.controllers.garbagecollector.graph import ObjectReference, ObjectState, identity_of
from pilothouse.controllers.garbagecollector.graph_builder import MANY_OWNERS, GraphEvent
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json

_RETIREMENT = 2.0
"""Seconds for which a no longer served resource stays monitored, to receive pending deletions."""


class GraphMonitor:
    """The reflector's store of a monitor."""

    _known: dict[str, ObjectReference]  # by key

    def __init__(self, kind: GroupVersionKind, emit: Callable[[GraphEvent], None]) -> None:
        self._kind = kind
        self._emit = emit
        self._known = {}
        self.synced = asyncio.Event()

    def add(self, obj: Json) -> None:
        key, identity = meta_namespace_key(obj), identity_of(self._kind, obj)
        before = self._known.setdefault(key, identity)
        if before != identity:
            self._emit(GraphEvent(before))
            self._known[key] = before = identity
        if len(obj["metadata"].get("ownerReferences") or ()) > MANY_OWNERS:
            self._emit(GraphEvent(before, unread=obj))
        else:
            self._emit(GraphEvent(before, ObjectState.of(obj)))

    update = add

    def delete(self, obj: Json) -> None:
        identity = self._known.pop(meta_namespace_key(obj), None)
        if identity is not None:
            self._emit(GraphEvent(identity))

    def replace(self, objects: list[Json]) -> None:
        gone = self._known.keys() - {meta_namespace_key(obj) for obj in objects}
        for key in gone:
            self._emit(GraphEvent(self._known.pop(key)))
        for obj in objects:
            self.add(obj)
        self.synced.set()

    def resync(self) -> None:
        """Ignore resyncs: the graph keeps all state."""


class GraphMonitors:
    def __init__(self, client: Client, emit: Callable[[GraphEvent], None], clock: Clock) -> None:
        self._client = client
        self._emit = emit
        self._clock = clock
        self._monitors: dict[GroupVersionResource, GraphMonitor] = {}
        self._tasks: dict[GroupVersionResource, asyncio.Task[None]] = {}
        self._retired: set[asyncio.Task[None]] = set()

    def sync(self, resources: Mapping[GroupVersionResource, GroupVersionKind]) -> None:
        """Monitor exactly these resources."""
        for resource in self._monitors.keys() - resources.keys():
            del self._monitors[resource]
            retired = asyncio.create_task(self._retire(self._tasks.pop(resource)))
            self._retired.add(retired)
            retired.add_done_callback(self._retired.discard)
        for resource, kind in resources.items():
            if resource not in self._monitors:
                monitor = self._monitors[resource] = GraphMonitor(kind, self._emit)
                self._tasks[resource] = asyncio.create_task(self._follow(resource, monitor))

    def is_synced(self, resource: GroupVersionResource) -> bool:
        monitor = self._monitors.get(resource)
        return monitor is not None and monitor.synced.is_set()

    async def wait_synced(self) -> None:
        for monitor in [*self._monitors.values()]:
            await monitor.synced.wait()

    async def stop(self) -> None:
        tasks = {*self._tasks.values(), *self._retired}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, resource: GroupVersionResource, monitor: GraphMonitor) -> None:
        objects = self._client.for_resource(resource).metadata_only()
        await Reflector(objects, monitor, name=f"garbage collector: {resource}", clock=self._clock).run()

    async def _retire(self, task: asyncio.Task[None]) -> None:
        try:
            await self._clock.sleep(_RETIREMENT)
        finally:
            await cancelled(task)

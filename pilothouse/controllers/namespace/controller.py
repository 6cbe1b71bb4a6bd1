"""namespace-controller: deletes the content of terminating namespaces, then finalizes them."""

from __future__ import annotations

from datetime import datetime

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.clock import Clock
from pilothouse.client.controller import Controller, Requeue
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.namespace.deletion import NamespacedResourcesDeleter
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, metadata, name_of

NAMESPACES = GroupVersionResource("", "v1", "namespaces")
_RESYNC = 300.0
_SOON = 0.25
_MAX_DELAY = 60.0
"""Maximum retry delay of a namespace, in seconds."""


async def run(context: ControllerContext) -> None:
    queue = context.queue("namespace", str, max_delay=_MAX_DELAY)
    grace = context.config.namespace_deletion_grace_period

    def enqueue(namespace: Json) -> None:
        if is_deleting(namespace):
            queue.add_after(name_of(namespace), grace)

    informer = context.informer(NAMESPACES)
    handler = ResourceEventHandlerFuncs(add=enqueue, update=lambda old, new: enqueue(new))
    informer.add_event_handler(handler, resync_period=_RESYNC)
    deleter = NamespacedResourcesDeleter(context.client, context.clock)

    async def sync(name: str) -> Requeue | None:
        namespace = informer.indexer.get_by_key(name)
        if namespace is None or not is_deleting(namespace):
            return None
        estimate = await deleter.delete(name)
        return Requeue(_wait(namespace, estimate, context.clock)) if estimate else None

    workers = context.config.concurrent_namespace_syncs
    await Controller("namespace", sync, caches=(informer,), workers=workers, queue=queue, clock=context.clock).run()


def _wait(namespace: Json, estimate: int, clock: Clock) -> float:
    """Return the retry delay: at most half the estimate, as upstream; less for recent deletions."""
    deleted_at = datetime.fromisoformat(metadata(namespace)["deletionTimestamp"]).timestamp()
    age = max(0.0, clock.wall() - deleted_at)
    return min(estimate // 2 + 1, max(_SOON, age / 2))

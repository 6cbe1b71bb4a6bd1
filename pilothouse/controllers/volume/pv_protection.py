"""persistentvolume-protection-controller: keeps volumes while bound to a claim."""

from __future__ import annotations

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import PERSISTENT_VOLUMES
from pilothouse.kinds.deletion import is_deletion_candidate, needs_finalizer, with_finalizer, without_finalizer
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, part

FINALIZER = "kubernetes.io/pv-protection"


async def run(context: ControllerContext) -> None:
    queue = context.queue("pvprotection", str)
    informer, volumes = context.informer(PERSISTENT_VOLUMES), context.client.for_resource(PERSISTENT_VOLUMES)

    def enqueue(volume: Json) -> None:
        if needs_finalizer(volume, FINALIZER) or is_deletion_candidate(volume, FINALIZER):
            queue.add(name_of(volume))

    informer.add_event_handler(ResourceEventHandlerFuncs(add=enqueue, update=lambda old, new: enqueue(new)))

    async def sync(name: str) -> None:
        volume = informer.indexer.get_by_key(name)
        if volume is None:
            return
        try:
            is_bound = part(volume, "status").get("phase") == "Bound"
            if is_deletion_candidate(volume, FINALIZER) and not is_bound:
                await volumes.update(without_finalizer(volume, FINALIZER))
            elif needs_finalizer(volume, FINALIZER):
                await volumes.update(with_finalizer(volume, FINALIZER))
        except NotFound:
            return

    await Controller("pvprotection", sync, caches=(informer,), queue=queue, clock=context.clock).run()

"""volumeattributesclass-protection-controller: keeps classes while claims or volumes use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller
from pilothouse.controllers.context import ControllerContext, with_last_state
from pilothouse.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES
from pilothouse.kinds.deletion import is_deletion_candidate, needs_finalizer, with_finalizer, without_finalizer
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, name_of, text

FINALIZER = "kubernetes.io/vac-protection"
_NAME = "vacprotection"
_INDEX = "volumeAttributesClassName"


async def run(context: ControllerContext) -> None:
    queue, classes = context.queue(_NAME, str), context.informer(VOLUME_ATTRIBUTES_CLASSES)
    volumes, claims = context.informer(PERSISTENT_VOLUMES), context.informer(PERSISTENT_VOLUME_CLAIMS)

    def changed(vac: Json) -> None:
        if needs_finalizer(vac, FINALIZER) or is_deletion_candidate(vac, FINALIZER):
            queue.add(name_of(vac))

    def no_longer(names: Iterable[str]) -> None:
        for name in names:
            queue.add(name)

    classes.add_event_handler(ResourceEventHandlerFuncs(add=changed, update=lambda old, new: changed(new)))
    for users, names_in in ((volumes, volume_classes), (claims, claim_classes)):
        users.add_indexers({_INDEX: names_in})
        users.add_event_handler(_when_released(names_in, no_longer))

    async def sync(name: str) -> None:
        vac = classes.indexer.get_by_key(name)
        if vac is None:
            return
        used = any(users.indexer.by_index(_INDEX, name) for users in (volumes, claims))
        objects = context.client.for_resource(VOLUME_ATTRIBUTES_CLASSES)
        try:
            if is_deletion_candidate(vac, FINALIZER) and not used:
                await objects.update(without_finalizer(vac, FINALIZER))
            elif needs_finalizer(vac, FINALIZER):
                await objects.update(with_finalizer(vac, FINALIZER))
        except NotFound:
            return

    caches = (volumes, claims, classes)
    await Controller(_NAME, sync, caches=caches, queue=queue, clock=context.clock).run()


def _when_released(
    names_in: Callable[[Json], set[str]], released: Callable[[Iterable[str]], None]
) -> ResourceEventHandlerFuncs:
    """Return handlers that report the classes an object no longer uses."""

    return ResourceEventHandlerFuncs(
        update=lambda old, new: released(names_in(old) - names_in(new)),
        delete=with_last_state(lambda state: released(names_in(state))),
    )


def volume_classes(volume: Json) -> set[str]:
    return {text(volume, "spec", "volumeAttributesClassName")} - {""}


def claim_classes(claim: Json) -> set[str]:
    """Return the classes of the claim: requested, current and target."""
    status = claim.get("status") or {}
    return {
        text(claim, "spec", "volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName") or "",
        text(status, "modifyVolumeStatus", "targetVolumeAttributesClassName"),
    } - {""}

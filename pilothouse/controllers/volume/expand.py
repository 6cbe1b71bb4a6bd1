"""persistentvolume-expander-controller: expands claims of simulated storage at once.

For other storage, an event announces that an external resizer is responsible.
"""

from __future__ import annotations

import asyncio

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.controller import Controller
from pilothouse.client.events.event import NORMAL, EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from pilothouse.controllers.volume.persistentvolume import matching
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, annotations_of, name_of, namespace_of, part, uid_of

_NAME = "volume_expand"
_UNDER_WAY = ("Resizing", "FileSystemResizePending", "ModifyingVolume", "ModifyVolumeError")
"""Conditions of claims with an unfinished resize or modification."""


async def run(context: ControllerContext) -> None:
    await _Expander(context).run()


class _Expander:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = context.queue(_NAME, str)
        self._claims, self._volumes = context.informer(PERSISTENT_VOLUME_CLAIMS), context.informer(PERSISTENT_VOLUMES)
        self._recorder = EventRecorder(context.client, EventSource(_NAME), clock=context.clock)

    async def run(self) -> None:
        self._claims.add_event_handler(
            ResourceEventHandlerFuncs(add=self._claim_changed, update=lambda old, new: self._claim_changed(new))
        )
        caches, clock = (self._claims, self._volumes), self._context.clock
        claims = Controller(_NAME, self._sync, caches=caches, queue=self._queue, clock=clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(claims.run())
            tasks.create_task(self._recorder.run())

    def _claim_changed(self, claim: Json) -> None:
        if matching.phase_of(claim) == "Bound" and (wants_more(claim) or wants_other_class(claim)):
            self._queue.add(meta_namespace_key(claim))

    async def _sync(self, key: str) -> None:
        claim = self._claims.indexer.get_by_key(key)
        volume = self._volumes.indexer.get_by_key(claim["spec"].get("volumeName") or "") if claim else None
        if claim is None or volume is None or (matching.claim_ref(volume) or {}).get("uid") != uid_of(claim):
            return
        try:
            if annotations_of(volume).get(matching.PROVISIONED_BY) == matching.SIMULATED:
                await self._grow(claim, volume)
            elif wants_more(claim):
                message = "waiting for an external controller to expand this PVC"
                self._recorder.event(claim, NORMAL, "ExternalExpanding", message)
        except NotFound:
            return

    async def _grow(self, claim: Json, volume: Json) -> None:
        """Expand the volume, then the claim, so that a claim never exceeds its volume. Raises StatusError."""
        if not (wants_more(claim) or wants_other_class(claim)):
            return
        spec = dict(volume["spec"])
        if matching.requested_size(claim) > matching.storage_in(spec.get("capacity")):
            spec["capacity"] = {**(spec.get("capacity") or {}), "storage": str(matching.requested_size(claim))}
        if wants_other_class(claim):
            spec["volumeAttributesClassName"] = claim["spec"]["volumeAttributesClassName"]
        if spec != volume["spec"]:
            patch = {"spec": {key: spec[key] for key in ("capacity", "volumeAttributesClassName") if key in spec}}
            await self._context.client.for_resource(PERSISTENT_VOLUMES).patch(name_of(volume), patch)
        claims = self._context.client.for_resource(PERSISTENT_VOLUME_CLAIMS, namespace=namespace_of(claim))
        await claims.update_status({**claim, "status": grown_status(claim)})
        if wants_more(claim):
            self._recorder.event(claim, NORMAL, "VolumeResizeSuccessful", "Resize volume succeeded")


def wants_more(claim: Json) -> bool:
    return matching.requested_size(claim) > matching.storage_in(part(claim, "status").get("capacity"))


def wants_other_class(claim: Json) -> bool:
    wanted = claim["spec"].get("volumeAttributesClassName") or ""
    return bool(wanted) and wanted != part(claim, "status").get("currentVolumeAttributesClassName")


def grown_status(claim: Json) -> Json:
    """Return the status of a fully expanded claim."""
    status = dict(claim.get("status") or {})
    for over in ("allocatedResourceStatuses", "modifyVolumeStatus"):
        status.pop(over, None)
    if wants_more(claim):
        size = {"storage": str(matching.requested_size(claim))}
        status["capacity"] = {**(status.get("capacity") or {}), **size}
        status["allocatedResources"] = {**(status.get("allocatedResources") or {}), **size}
    if wants_other_class(claim):
        status["currentVolumeAttributesClassName"] = claim["spec"]["volumeAttributesClassName"]
    conditions = [
        condition for condition in status.pop("conditions", None) or () if condition["type"] not in _UNDER_WAY
    ]
    return status | ({"conditions": conditions} if conditions else {})

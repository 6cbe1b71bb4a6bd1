"""persistentvolume-binder-controller: binds claims to volumes, and reclaims released volumes.

The state of a binding is stored in both objects. After a crash at any step, the next sync of either object continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.shared_informer import wait_for_cache_sync
from pilothouse.client.controller import Controller, TryAgain, enqueue_keys
from pilothouse.client.events.event import EventSource
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.wait import until
from pilothouse.controllers import resources
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.pod_index import index_pods_by_claim
from pilothouse.controllers.volume.persistentvolume.binding import Binding, Claims, Volumes
from pilothouse.controllers.volume.persistentvolume.claims import ClaimSyncs
from pilothouse.controllers.volume.persistentvolume.matching import claim_key_of, claim_ref, class_of_volume, phase_of
from pilothouse.controllers.volume.persistentvolume.provisioning import Provisioning
from pilothouse.controllers.volume.persistentvolume.volumes import VolumeSyncs
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import Json, name_of


async def run(context: ControllerContext) -> None:
    await _Binder(context).run()


class _Binder:
    def __init__(self, context: ControllerContext) -> None:
        self._context, client = context, context.client
        self._informed_volumes = context.informer(resources.PERSISTENT_VOLUMES)
        self._informed_claims = context.informer(resources.PERSISTENT_VOLUME_CLAIMS)
        self._classes, self._pods = context.informer(resources.STORAGE_CLASSES), context.informer(resources.PODS)
        index_pods_by_claim(self._pods)
        self._claim_queue, self._volume_queue = context.queue("claims", str), context.queue("volumes", str)
        self._recorder = EventRecorder(client, EventSource("persistentvolume-controller"), clock=context.clock)
        self._volumes, self._claims = Volumes(), Claims()
        binding = Binding(client, self._volumes, self._claims, self._recorder)
        provisioning = Provisioning(client, binding, self._volumes, self._recorder)
        self._claim_syncs = ClaimSyncs(
            self._volumes, self._classes.indexer, self._pods.indexer, binding, provisioning, self._recorder
        )
        self._volume_syncs = VolumeSyncs(
            client, self._claims, self._informed_claims.indexer, binding, self._recorder, self._claim_queue.add
        )

    async def run(self) -> None:
        self._informed_volumes.add_event_handler(enqueue_keys(self._volume_queue))
        self._informed_claims.add_event_handler(enqueue_keys(self._claim_queue))
        await wait_for_cache_sync(self._informed_volumes, self._informed_claims, self._classes, self._pods)
        for volume in self._informed_volumes.indexer.list():
            self._volumes.keep(volume)
        for claim in self._informed_claims.indexer.list():
            self._claims.keep(claim)
        self._classes.add_event_handler(ResourceEventHandlerFuncs(add=self._class_added))
        clock, period = self._context.clock, self._context.config.pvclaimbinder_sync_period
        async with asyncio.TaskGroup() as tasks:
            for controller in (
                Controller("claims", self._sync_claim, queue=self._claim_queue, clock=clock),
                Controller("volumes", self._sync_volume, queue=self._volume_queue, clock=clock),
            ):
                tasks.create_task(controller.run())
            tasks.create_task(self._recorder.run())
            tasks.create_task(until(self._resync, period, clock=clock))

    async def _sync_claim(self, key: str) -> None:
        claim = self._informed_claims.indexer.get_by_key(key)
        if claim is not None:
            if self._claims.keep(claim):
                await _unless_outdated(self._claim_syncs.sync(claim))
        elif (gone := self._claims.forget(key)) is not None and (volume := gone["spec"].get("volumeName")):
            self._volume_queue.add(volume)

    async def _sync_volume(self, name: str) -> None:
        volume = self._informed_volumes.indexer.get_by_key(name)
        if volume is None:
            gone = self._volumes.forget(name)
            if gone is not None and claim_ref(gone):
                self._claim_queue.add(claim_key_of(gone))
        elif self._volumes.keep(volume):
            await _unless_outdated(self._volume_syncs.sync(volume))
            self._hasten_claims(volume)

    def _hasten_claims(self, before: Json) -> None:
        """Enqueue waiting claims when a volume becomes available."""
        volume = self._volumes.get(name_of(before))
        if volume is not None and phase_of(volume) == "Available" != phase_of(before):
            waiting = [claim_key_of(volume)] if claim_ref(volume) else self._claims.unbound(class_of_volume(volume))
            for key in waiting:
                self._claim_queue.add(key)

    def _class_added(self, added: Json) -> None:
        for key in (*self._claims.unbound(name_of(added)), *self._claims.unbound("")):
            self._claim_queue.add(key)

    def _resync(self) -> None:
        """Enqueue all objects that are not bound; bound objects are synced on change."""
        for claim in self._informed_claims.indexer.list():
            if phase_of(claim) != "Bound":
                self._claim_queue.add(meta_namespace_key(claim))
        for volume in self._informed_volumes.indexer.list():
            if phase_of(volume) != "Bound":
                self._volume_queue.add(name_of(volume))


async def _unless_outdated(sync: Awaitable[None]) -> None:
    """Await the sync; concurrent changes and deletions are left to the next event. Raises TryAgain."""
    try:
        await sync
    except Conflict as error:
        raise TryAgain(str(error)) from None
    except NotFound:
        return

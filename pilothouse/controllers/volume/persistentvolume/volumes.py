"""Sync of volumes: available, bound, or reclaimed."""

from __future__ import annotations

import re
from collections.abc import Callable

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.events.event import WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from pilothouse.controllers.volume.persistentvolume import matching
from pilothouse.controllers.volume.persistentvolume.binding import Binding, Claims
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, annotations_of, name_of, part, uid_of
from pilothouse.machinery.status_error import PilothouseError

_GIVEN_BACK = ("Released", "Failed")
_REMOVABLE_PATH = re.compile("/tmp/.+")


class NotDeletable(PilothouseError):
    """No deleter is known for the volume."""


@dataclass(frozen=True, slots=True)
class VolumeSyncs:
    client: Client
    claims: Claims
    informed_claims: Indexer
    binding: Binding
    recorder: EventRecorder
    enqueue_claim: Callable[[str], None]

    async def sync(self, volume: Json) -> None:
        """Sync the volume. Raises StatusError."""
        ref = matching.claim_ref(volume)
        if ref is None or not ref.get("uid"):
            await self.binding.set_volume_phase(volume, "Available")
            return
        key = matching.claim_key_of(volume)
        claim = self.claims.get(key)
        if claim is None and matching.phase_of(volume) not in _GIVEN_BACK:
            claim = self.informed_claims.get_by_key(key) or await self._read_claim(ref)
        if claim is not None and uid_of(claim) != ref["uid"]:
            claim = await self._read_claim(ref)
        claim = claim if claim is not None and uid_of(claim) == ref["uid"] else None
        if claim is None:
            await self._give_back(volume)
        elif not claim["spec"].get("volumeName"):
            # Enqueue a claim that does not name this volume yet, or warn about incompatible volume modes.
            if matching.volume_mode(volume) == matching.volume_mode(claim):
                self.enqueue_claim(meta_namespace_key(claim))
                return
            message = (
                "Cannot bind PersistentVolume {} to requested PersistentVolumeClaim{} due to incompatible volumeMode."
            )
            of_volume = message.replace(" {} ", " ", 1).format(f' "{name_of(claim)}"')
            self.recorder.event(volume, WARNING, "VolumeMismatch", of_volume)
            self.recorder.event(claim, WARNING, "VolumeMismatch", message.format(f'"{name_of(volume)}"', ""))
        elif claim["spec"]["volumeName"] == name_of(volume):
            await self.binding.set_volume_phase(volume, "Bound")
        elif matching.PROVISIONED_BY in annotations_of(volume) and _reclaim_policy(volume) == "Delete":
            await self._give_back(volume)
        else:
            await self.binding.unbind(volume)

    async def _read_claim(self, ref: Json) -> Json | None:
        try:
            return await self.client.for_resource(PERSISTENT_VOLUME_CLAIMS, namespace=ref["namespace"]).get(ref["name"])
        except NotFound:
            return None

    async def _give_back(self, volume: Json) -> None:
        if matching.phase_of(volume) not in _GIVEN_BACK:
            volume = await self.binding.set_volume_phase(volume, "Released")
        if annotations_of(volume).get(matching.MIGRATED_TO):
            return
        policy = _reclaim_policy(volume)
        if policy == "Delete":
            try:
                if not is_deleted_here(volume):
                    return
            except NotDeletable as error:
                await self.binding.fail_volume(volume, WARNING, "VolumeFailedDelete", str(error))
                return
            volumes = self.client.for_resource(PERSISTENT_VOLUMES)
            try:
                newest = await volumes.get(name_of(volume))
                if (matching.claim_ref(newest) or {}).get("uid") == (matching.claim_ref(volume) or {}).get("uid"):
                    await volumes.delete(name_of(volume))
            except NotFound:
                return
        elif policy == "Recycle":
            message = "No recycler plugin found for the volume!"
            await self.binding.fail_volume(volume, WARNING, "VolumeFailedRecycle", message)
        elif policy != "Retain":
            message = "Volume has unrecognized PersistentVolumeReclaimPolicy"
            await self.binding.fail_volume(volume, WARNING, "VolumeUnknownReclaimPolicy", message)


def is_deleted_here(volume: Json) -> bool:
    """Return False if an external provisioner or driver deletes the volume. Raises NotDeletable."""
    if provisioner := annotations_of(volume).get(matching.PROVISIONED_BY):
        return provisioner == matching.SIMULATED
    spec = volume["spec"]
    if spec.get("csi") is not None:
        return False
    host_path = part(spec, "hostPath").get("path")
    if host_path is None:
        where = f'"{name_of(volume)}"'
        raise NotDeletable(
            f"error getting deleter volume plugin for volume {where}: no deletable volume plugin matched"
        )
    if not _REMOVABLE_PATH.search(host_path):
        raise NotDeletable(f"host_path deleter only supports /tmp/.+ but received provided {host_path}")
    return True


def _reclaim_policy(volume: Json) -> str:
    return volume["spec"].get("persistentVolumeReclaimPolicy") or ""

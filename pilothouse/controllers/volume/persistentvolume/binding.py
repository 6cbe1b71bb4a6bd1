"""Binding writes: four idempotent steps, so that binding can resume after any of them."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.client.cache.indexer import Indexer, IndexFunc
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.events.event import reference_to
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.resource import ResourceClient
from pilothouse.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from pilothouse.controllers.volume.persistentvolume import matching
from pilothouse.machinery.objects import (
    Json,
    annotations_of,
    metadata,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)

_PRE_RESIZE = "volume.alpha.kubernetes.io/pre-resize-capacity"
"""Volume annotation: capacity before the resize, until the file system is resized."""
_BY_CLAIM, _FREE_BY_CLASS, _UNBOUND_BY_CLASS = "claim", "free", "unbound"


class Binding:
    """Writes bindings. Every method raises StatusError. Written objects become the newest known state."""

    def __init__(self, client: Client, volumes: Volumes, claims: Claims, recorder: EventRecorder) -> None:
        self._client = client
        self._volumes, self._claims = volumes, claims
        self._recorder = recorder

    async def bind(self, volume: Json, claim: Json, **annotations: str) -> None:
        """Bind the volume and the claim; `annotations` are added to the claim if missing."""
        changed = volume
        if not matching.is_bound_to(volume, claim) and matching.BOUND_BY_CONTROLLER not in annotations_of(volume):
            changed = matching.with_annotations(volume, **{matching.BOUND_BY_CONTROLLER: "yes"})
        if not matching.is_bound_to(volume, claim) or (matching.claim_ref(volume) or {}).get("uid") != uid_of(claim):
            changed = {**changed, "spec": {**volume["spec"], "claimRef": reference_to(claim)}}
        volume = volume if changed is volume else await self._write_volume(changed)
        volume = await self.set_volume_phase(volume, "Bound")
        claim = await self._point_claim_to(volume, claim, annotations)
        await self.set_claim_status(claim, "Bound", volume)

    async def unbind(self, volume: Json) -> None:
        """Unbind the volume; a reservation made by a user is kept."""
        annotations, spec = dict(annotations_of(volume)), dict(volume["spec"])
        if matching.BOUND_BY_CONTROLLER in annotations:
            del annotations[matching.BOUND_BY_CONTROLLER], spec["claimRef"]
        else:
            spec["claimRef"] = {key: value for key, value in spec["claimRef"].items() if key != "uid"}
        changed = {**volume, "metadata": {**metadata(volume), "annotations": annotations}, "spec": spec}
        await self.set_volume_phase(await self._write_volume(changed), "Available")

    async def set_volume_phase(self, volume: Json, phase: str, message: str = "") -> Json:
        if matching.phase_of(volume) == phase:
            return volume
        status = {key: value for key, value in (volume.get("status") or {}).items() if key != "message"}
        status |= {"phase": phase} | ({"message": message} if message else {})
        written = await self._client.for_resource(PERSISTENT_VOLUMES).update_status({**volume, "status": status})
        self._volumes.keep(written)
        return written

    async def fail_volume(self, volume: Json, type_: str, reason: str, message: str) -> None:
        if matching.phase_of(volume) != "Failed":
            self._recorder.event(await self.set_volume_phase(volume, "Failed", message), type_, reason, message)

    async def lose_claim(self, claim: Json, type_: str, reason: str, message: str) -> None:
        if matching.phase_of(claim) != "Lost":
            self._recorder.event(await self.set_claim_status(claim, "Lost", None), type_, reason, message)

    async def set_claim_status(self, claim: Json, phase: str, volume: Json | None = None) -> Json:
        status = new_claim_status(claim, phase, volume)
        if status == (claim.get("status") or {}):
            return claim
        written = await self._claim_client(claim).update_status({**claim, "status": status})
        self._claims.keep(written)
        return written

    async def write_claim(self, claim: Json) -> Json:
        written = await self._claim_client(claim).update(claim)
        self._claims.keep(written)
        return written

    async def _point_claim_to(self, volume: Json, claim: Json, annotations: dict[str, str]) -> Json:
        wanted = {**annotations_of(claim), **annotations, matching.BIND_COMPLETED: "yes"}
        if claim["spec"].get("volumeName") != name_of(volume):
            wanted[matching.BOUND_BY_CONTROLLER] = "yes"
        elif wanted == annotations_of(claim):
            return claim
        changed = matching.with_annotations(claim, **wanted)
        return await self.write_claim({**changed, "spec": {**claim["spec"], "volumeName": name_of(volume)}})

    async def _write_volume(self, volume: Json) -> Json:
        written = await self._client.for_resource(PERSISTENT_VOLUMES).update(volume)
        self._volumes.keep(written)
        return written

    def _claim_client(self, claim: Json) -> ResourceClient:
        return self._client.for_resource(PERSISTENT_VOLUME_CLAIMS, namespace=namespace_of(claim))


def new_claim_status(claim: Json, phase: str, volume: Json | None) -> Json:
    """Return the status of the claim with this volume; capacity is set only once, because expansion updates it
    later."""
    old = claim.get("status") or {}
    if volume is None:
        of_volume = ("accessModes", "capacity", "currentVolumeAttributesClassName")
        return {**{key: value for key, value in old.items() if key not in of_volume}, "phase": phase}
    status = {**old, "phase": phase, "accessModes": volume["spec"].get("accessModes")}
    if old.get("phase") == phase:
        return status
    capacity = volume["spec"].get("capacity") or {}
    if before := annotations_of(volume).get(_PRE_RESIZE):
        status["capacity"] = {**(old.get("capacity") or {}), "storage": before}
    elif matching.storage_in(capacity) != matching.storage_in(old.get("capacity")):
        status["capacity"] = capacity
    current = volume["spec"].get("volumeAttributesClassName")
    if old.get("phase") == "Pending" and phase == "Bound" and current is not None:
        status["currentVolumeAttributesClassName"] = current
    return status


class NewestStates:
    """Newest known states: from the informers, or from this controller's own later writes.

    Without its own writes, the controller could bind one volume to two claims before the informer catches up.
    """

    def __init__(self, indexers: Mapping[str, IndexFunc]) -> None:
        self._indexer = Indexer(indexers)

    def keep(self, obj: Json) -> bool:
        """Store the object; return False if a newer version is known."""
        known = self._indexer.get(obj)
        if known is not None and int(resource_version_of(known)) > int(resource_version_of(obj)):
            return False
        metadata(obj).pop("managedFields", None)
        self._indexer.add(obj)
        return True

    def get(self, key: str) -> Json | None:
        return self._indexer.get_by_key(key)

    def forget(self, key: str) -> Json | None:
        """Remove the object; return the last known state."""
        known = self._indexer.get_by_key(key)
        self._indexer.delete(key)
        return known

    def all(self) -> list[Json]:
        return self._indexer.list()

    def _by(self, index: str, value: str) -> list[Json]:
        return self._indexer.by_index(index, value)


class Volumes(NewestStates):
    def __init__(self) -> None:
        super().__init__(
            {
                _BY_CLAIM: lambda volume: (matching.claim_key_of(volume),) if matching.claim_ref(volume) else (),
                _FREE_BY_CLASS: lambda volume: (
                    () if matching.claim_ref(volume) else (matching.class_of_volume(volume),)
                ),
            }
        )

    def candidates(self, claim: Json) -> list[Json]:
        """Return volumes reserved for the claim, and free volumes of its class."""
        reserved = self._by(_BY_CLAIM, meta_namespace_key(claim))
        return reserved + self._by(_FREE_BY_CLASS, matching.class_of_claim(claim))


class Claims(NewestStates):
    def __init__(self) -> None:
        super().__init__(
            {
                _UNBOUND_BY_CLASS: lambda claim: (
                    () if matching.BIND_COMPLETED in annotations_of(claim) else (matching.class_of_claim(claim),)
                )
            }
        )

    def unbound(self, class_name: str) -> list[str]:
        """Return the keys of unbound claims of the class."""
        return [meta_namespace_key(claim) for claim in self._by(_UNBOUND_BY_CLASS, class_name)]

"""Sync of claims: bind to a volume, wait, or report a lost volume."""

from __future__ import annotations

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.controllers.pod_index import PODS_BY_CLAIM
from pilothouse.controllers.volume.persistentvolume import matching
from pilothouse.controllers.volume.persistentvolume.binding import Binding, Volumes
from pilothouse.controllers.volume.persistentvolume.provisioning import Provisioning
from pilothouse.controllers.volume.pvc_protection import is_terminated
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, name_of, uid_of
from pilothouse.machinery.status_error import PilothouseError


class Misbound(PilothouseError):
    """The volume of a claim is bound to another claim."""


@dataclass(frozen=True, slots=True)
class ClaimSyncs:
    volumes: Volumes
    classes: Indexer
    pods: Indexer
    binding: Binding
    provisioning: Provisioning
    recorder: EventRecorder

    async def sync(self, claim: Json) -> None:
        """Sync the claim. Raises Misbound or StatusError."""
        if matching.BIND_COMPLETED in annotations_of(claim):
            await self._sync_bound(claim)
        elif name := claim["spec"].get("volumeName"):
            volume = self.volumes.get(name)
            if volume is None:
                await self.binding.set_claim_status(claim, "Pending")
            elif matching.claim_ref(volume) is None and (reason := matching.why_not(volume, claim)):
                message = f'Cannot bind to requested volume "{name_of(volume)}": {reason}'
                self.recorder.event(claim, WARNING, "VolumeMismatch", message)
                await self.binding.set_claim_status(claim, "Pending")
            elif matching.claim_ref(volume) is None or matching.is_bound_to(volume, claim):
                await self.binding.bind(volume, claim)
            else:
                await self._volume_is_taken(claim, volume)
        else:
            await self._sync_unbound(claim)

    async def _sync_bound(self, claim: Json) -> None:
        name = claim["spec"].get("volumeName")
        volume = self.volumes.get(name) if name else None
        if volume is None:
            lost = "its PersistentVolume" if name else "reference to PersistentVolume"
            message = f"Bound claim has lost {lost}. Data on the volume is lost!"
            await self.binding.lose_claim(claim, WARNING, "ClaimLost", message)
        elif matching.claim_ref(volume) is None or (matching.claim_ref(volume) or {}).get("uid") == uid_of(claim):
            await self.binding.bind(volume, claim)
        else:
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
            await self.binding.lose_claim(claim, WARNING, "ClaimMisbound", message)

    async def _volume_is_taken(self, claim: Json, volume: Json) -> None:
        message = f'volume "{name_of(volume)}" already bound to a different claim.'
        self.recorder.event(claim, WARNING, "FailedBinding", message)
        if matching.BOUND_BY_CONTROLLER in annotations_of(claim):
            raise Misbound(
                f'invalid binding of claim "{meta_namespace_key(claim)}" to volume "{name_of(volume)}": volume already'
                f' claimed by "{matching.claim_key_of(volume)}"'
            )
        await self.binding.set_claim_status(claim, "Pending")

    async def _sync_unbound(self, claim: Json) -> None:
        class_name = matching.class_of_claim(claim)
        storage_class = self.classes.get_by_key(class_name) if class_name else None
        delayed = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
        volume = matching.best_match(claim, self.volumes.candidates(claim), delayed=delayed)
        if volume is not None:
            await self.binding.bind(volume, claim)
        elif not matching.has_class(claim) and (default := matching.default_class(self.classes.list())) is not None:
            await self.binding.write_claim({**claim, "spec": {**claim["spec"], "storageClassName": name_of(default)}})
        elif delayed and matching.SELECTED_NODE not in annotations_of(claim):
            self._tell_what_it_waits_for(claim)
            await self.binding.set_claim_status(claim, "Pending")
        elif class_name:
            await self.provisioning.provision(claim, storage_class)
        else:
            message = "no persistent volumes available for this claim and no storage class is set"
            self.recorder.event(claim, NORMAL, "FailedBinding", message)
            await self.binding.set_claim_status(claim, "Pending")

    def _tell_what_it_waits_for(self, claim: Json) -> None:
        pods = self.pods.by_index(PODS_BY_CLAIM, meta_namespace_key(claim))
        waiting = [name_of(pod) for pod in pods if not is_terminated(pod) and not pod["spec"].get("nodeName")]
        reason, message = "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
        if waiting:
            reason = "WaitForPodScheduled"
            message = f"waiting for pod{'s' if len(waiting) > 1 else ''} {','.join(sorted(waiting))} to be scheduled"
        self.recorder.event(claim, NORMAL, reason, message)

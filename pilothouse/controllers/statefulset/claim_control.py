"""Claims of a StatefulSet's pods: creation, and owner references, which determine when claims are garbage collected.

    | whenDeleted | whenScaled | pod within replicas | pod beyond replicas |
    |---|---|---|---|
    | Retain | Retain | none | none |
    | Delete | Retain | StatefulSet | StatefulSet |
    | Retain | Delete | none | pod |
    | Delete | Delete | StatefulSet | pod |

The owner reference is a controller reference. Claims with another controller, or with a stale owner of the same name,
are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.resources import PERSISTENT_VOLUME_CLAIMS
from pilothouse.controllers.statefulset.identity import claims_for, ordinal_of, ordinals
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import controller_ref, is_owned_by, owner_references
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of, uid_of
from pilothouse.machinery.status_error import PilothouseError, StatusError, aggregate

Wrote: TypeAlias = Callable[[Json, GroupVersionResource, Json], None]
"""Called with the StatefulSet, the resource and the written object."""
_RETAIN, _DELETE = "Retain", "Delete"


class ClaimsFailed(PilothouseError):
    """Some claims of a pod could not be created or updated."""


class StatefulClaims:
    """Claims of pods, read from the informer cache."""

    def __init__(self, client: Client, informer: SharedIndexInformer, recorder: EventRecorder, wrote: Wrote) -> None:
        self._claims = client.for_resource(PERSISTENT_VOLUME_CLAIMS)
        self._indexer = informer.indexer
        self._recorder = recorder
        self._wrote = wrote

    def are_owned(self, stateful_set: Json, pod: Json) -> bool:
        """Return whether the pod's existing claims have the owner required by the retention policy."""
        return all(is_owner_up_to_date(claim, stateful_set, pod) for claim in self._known(stateful_set, pod))

    def is_stale(self, stateful_set: Json, pod: Json) -> bool:
        """Return whether a claim is owned by a former pod of this name, and thus about to be deleted."""
        if retention_policy(stateful_set)[1] == "Retain":
            return False
        return any(is_stale(claim, pod) for claim in self._known(stateful_set, pod))

    async def create(self, stateful_set: Json, pod: Json) -> None:
        """Create missing claims. Raises ClaimsFailed after trying all."""
        errors = []
        for claim in claims_for(stateful_set, pod).values():
            known = self._indexer.get_by_key(meta_namespace_key(claim))
            if known is None:
                error = await self._create(stateful_set, pod, claim)
                if error is not None:
                    errors.append(f"failed to create PVC {name_of(claim)}: {error}")
            elif is_deleting(known):
                errors.append(f"pvc {name_of(claim)} is being deleted")
        if errors:
            raise ClaimsFailed(aggregate(errors))

    async def own(self, stateful_set: Json, pod: Json) -> None:
        """Set the owners required by the retention policy on the pod's claims. Raises ClaimsFailed."""
        for claim in self._known(stateful_set, pod):
            if has_unexpected_controller(claim, stateful_set, pod):
                self._recorder.event(stateful_set, WARNING, "ConflictingController", _conflicting(name_of(claim)))
            if not is_owner_up_to_date(claim, stateful_set, pod):
                await self._update(stateful_set, with_right_owner(claim, stateful_set, pod))

    def _known(self, stateful_set: Json, pod: Json) -> Iterator[Json]:
        for claim in claims_for(stateful_set, pod).values():
            if (known := self._indexer.get_by_key(meta_namespace_key(claim))) is not None:
                yield known

    async def _create(self, stateful_set: Json, pod: Json, claim: Json) -> StatusError | None:
        where = f"Pod {name_of(pod)} in StatefulSet {name_of(stateful_set)}"
        try:
            created = await self._claims.namespace(namespace_of(claim)).create(claim)
        except AlreadyExists as error:
            return error
        except StatusError as error:
            message = f"Create Claim {name_of(claim)} for {where} failed error: {error}"
            self._recorder.event(stateful_set, WARNING, "FailedCreate", message)
            return error
        self._wrote(stateful_set, PERSISTENT_VOLUME_CLAIMS, created)
        message = f"Create Claim {name_of(claim)} {where} success"
        self._recorder.event(stateful_set, NORMAL, "SuccessfulCreate", message)
        return None

    async def _update(self, stateful_set: Json, claim: Json) -> None:
        try:
            updated = await self._claims.namespace(namespace_of(claim)).update(claim)
        except StatusError as error:
            message = f"could not update claim {name_of(claim)} for delete policy ownerRefs: {error}"
            raise ClaimsFailed(message) from error
        self._wrote(stateful_set, PERSISTENT_VOLUME_CLAIMS, updated)


def _conflicting(claim: str) -> str:
    return (
        f"PersistentVolumeClaim {claim} has a conflicting OwnerReference that acts as a manging controller, the"
        " retention policy is ignored for this claim"
    )


def retention_policy(stateful_set: Json) -> tuple[str, str]:
    """Return (whenDeleted, whenScaled)."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy")
    if policy is None:
        return _RETAIN, _RETAIN
    return policy.get("whenDeleted") or _RETAIN, policy.get("whenScaled") or _RETAIN


def wanted_owner(stateful_set: Json, pod: Json) -> Json | None:
    """Return the StatefulSet, the pod, or None, according to the table."""
    when_deleted, when_scaled = retention_policy(stateful_set)
    if when_scaled == _DELETE and ordinal_of(pod) not in ordinals(stateful_set):
        return pod
    return stateful_set if when_deleted == _DELETE else None


def has_unexpected_controller(claim: Json, stateful_set: Json, pod: Json) -> bool:
    """Return whether the policy deletes claims but another controller owns this one."""
    if _DELETE not in retention_policy(stateful_set):
        return False
    for reference in owner_references(claim):
        mine = next((owner for owner in (stateful_set, pod) if _names(reference, owner)), None)
        if mine is None and reference.get("controller"):
            return True
        if mine is not None and reference.get("uid") != uid_of(mine):
            return True
    return False


def is_stale(claim: Json, owner: Json) -> bool:
    """Return whether the claim is owned by a former object with the owner's kind and name."""
    reference = next((reference for reference in owner_references(claim) if _names(reference, owner)), None)
    return reference is not None and reference.get("uid") != uid_of(owner)


def is_owner_up_to_date(claim: Json, stateful_set: Json, pod: Json) -> bool:
    """Return whether the claim has the owner in the table, or must not be changed."""
    if is_stale(claim, stateful_set) or is_stale(claim, pod):
        return True
    if has_unexpected_controller(claim, stateful_set, pod):
        return not is_owned_by(claim, stateful_set) and not is_owned_by(claim, pod)
    ours = (uid_of(stateful_set), uid_of(pod))
    if any(reference.get("uid") in ours and not reference.get("controller") for reference in owner_references(claim)):
        return False
    wanted = wanted_owner(stateful_set, pod)
    return all(is_owned_by(claim, owner) is (owner is wanted) for owner in (stateful_set, pod))


def with_right_owner(claim: Json, stateful_set: Json, pod: Json) -> Json:
    """Return the claim with the owner in the table; with neither owner if another controller owns the claim."""
    kept = [
        reference
        for reference in owner_references(claim)
        if not _names(reference, stateful_set) and not _names(reference, pod)
    ]
    wanted = wanted_owner(stateful_set, pod)
    if wanted is not None and not has_unexpected_controller(claim, stateful_set, pod):
        kept.append(controller_ref(wanted))
    return {**claim, "metadata": {**metadata(claim), "ownerReferences": kept}}


def _names(reference: Json, owner: Json) -> bool:
    """Return whether the reference has the owner's kind and name; the uid may differ."""
    return (reference.get("apiVersion"), reference.get("kind"), reference.get("name")) == (
        owner["apiVersion"],
        owner["kind"],
        name_of(owner),
    )

"""PersistentVolumeClaims of a pod, classified by binding state, and assumed objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.cache.keys import meta_namespace_key
from pilothouse.controllers.volume.persistentvolume.matching import BIND_COMPLETED, class_of_claim, phase_of
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.owners import is_controlled_by
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, name_of, resource_version_of
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.scheduler.cache.pod_info import PodInfo

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class ClaimUnusable(PilothouseError):
    """A claim blocks the pod on every node; the message is the reason."""


@dataclass(slots=True)
class PodClaims:
    bound: list[Json] = field(default_factory=list)
    waiting: list[Json] = field(default_factory=list)
    """Claims with delayed binding: bound after node selection."""
    unbound: list[Json] = field(default_factory=list)
    """Claims with immediate binding that are not bound yet."""


def claims_of(pod: PodInfo, claims: AssumedObjects, classes: Indexer) -> PodClaims:
    """Classify the pod's claims. Raises ClaimUnusable."""
    found = PodClaims()
    for claim in _usable_claims(pod, claims):
        if is_bound(claim):
            found.bound.append(claim)
        elif not claim["spec"].get("volumeName") and waits_for_consumer(claim, classes):
            found.waiting.append(claim)
        else:
            found.unbound.append(claim)
    return found


def is_bound(claim: Json) -> bool:
    return bool(claim["spec"].get("volumeName")) and BIND_COMPLETED in annotations_of(claim)


def waits_for_consumer(claim: Json, classes: Indexer) -> bool:
    storage_class = classes.get_by_key(class_of_claim(claim))
    return storage_class is not None and storage_class.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER


def _usable_claims(pod: PodInfo, claims: AssumedObjects) -> Iterator[Json]:
    for volume in pod.spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
            missing = f'persistentvolumeclaim "{name}" not found'
        elif "ephemeral" in volume:
            name = f"{pod.name}-{volume['name']}"
            missing = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        else:
            continue
        claim = claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimUnusable(missing)
        _check(claim, pod, is_ephemeral="ephemeral" in volume)
        yield claim


def _check(claim: Json, pod: PodInfo, *, is_ephemeral: bool) -> None:
    name = name_of(claim)
    if phase_of(claim) == "Lost":
        volume = claim["spec"].get("volumeName") or ""
        raise ClaimUnusable(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"')
    if is_deleting(claim):
        raise ClaimUnusable(f'persistentvolumeclaim "{name}" is being deleted')
    if is_ephemeral and not is_controlled_by(claim, pod.pod):
        where = f"{pod.namespace}/{name}"
        raise ClaimUnusable(f"PVC {where} was not created for pod {pod.key} (pod is not owner)")


class AssumedObjects:
    """An assumption holds until the informer shows a newer state than the assumption's base."""

    def __init__(self, objects: Indexer) -> None:
        self._objects = objects
        self._assumed: dict[str, Json] = {}

    def assume(self, obj: Json) -> None:
        self._assumed[meta_namespace_key(obj)] = obj

    def forget(self, key: str) -> None:
        self._assumed.pop(key, None)

    def get(self, key: str) -> Json | None:
        observed, assumed = self._objects.get_by_key(key), self._assumed.get(key)
        if observed is None or assumed is None:
            return observed
        if resource_version_of(observed) != resource_version_of(assumed):
            del self._assumed[key]
            return observed
        return assumed

    def __iter__(self) -> Iterator[Json]:
        for key in self._objects.list_keys():
            if (obj := self.get(key)) is not None:
                yield obj

"""VolumeBinding: filters nodes by bound volumes, and binds or provisions delayed volumes for the selected node.

Bindings are assumed with the node selection. Before the pod is bound, the plugin writes the bindings and waits for the
volume controllers.
"""

from __future__ import annotations

from pilothouse.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from pilothouse.controllers.volume.persistentvolume import matching
from pilothouse.kinds.pods import has_ended
from pilothouse.machinery.objects import Json, annotations_of, name_of, namespace_of, resource_version_of, uid_of
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import PreFiltered, ReservingPlugin
from pilothouse.scheduler.plugins.volumes.node_volumes import NodeConflict, PodVolumes, find_volumes, is_reachable
from pilothouse.scheduler.plugins.volumes.pod_claims import AssumedObjects, ClaimUnusable, claims_of, is_bound

BIND_TIMEOUT = 600.0
_FIRST_LOOK, _LONGEST_PAUSE = 0.02, 1.0


class VolumesNotBound(PilothouseError):
    """The volumes of a pod could not be bound."""


class VolumeBinding(ReservingPlugin[PodVolumes]):
    name = "VolumeBinding"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, uses_claim),
            EventHint(Subject.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE),
            EventHint(Subject.STORAGE_CLASS, Action.ADD | Action.UPDATE),
            EventHint(Subject.NODE, Action.ADD | Action.LABELS),
            EventHint(Subject.CSI_NODE, Action.ADD | Action.UPDATE),
            EventHint(Subject.CSI_DRIVER, Action.UPDATE),
            EventHint(Subject.CSI_STORAGE_CAPACITY, Action.ADD | Action.UPDATE),
        )
        self._claims, self._volumes = AssumedObjects(handle.listers.claims), AssumedObjects(handle.listers.volumes)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not pod.claim_keys:
            return None
        try:
            claims = claims_of(pod, self._claims, self.handle.listers.storage_classes)
        except ClaimUnusable as error:
            return self.reject(str(error), final=True)
        if claims.unbound:
            return self.reject("pod has unbound immediate PersistentVolumeClaims", final=True)

        def check(node: NodeInfo) -> Rejection | None:
            try:
                find_volumes(claims, node, self._volumes, self.handle.listers)
            except NodeConflict as error:
                return self.reject(str(error), final=True)
            return None

        return check

    def reserve(self, pod: PodInfo, node: NodeInfo) -> None:
        if not pod.claim_keys:
            return
        claims = claims_of(pod, self._claims, self.handle.listers.storage_classes)
        if not claims.waiting:
            return
        volumes = find_volumes(claims, node, self._volumes, self.handle.listers)
        bindings = tuple((_bound_volume(volume, claim), claim) for volume, claim in volumes.bindings)
        provisions = tuple(
            matching.with_annotations(claim, **{matching.SELECTED_NODE: node.name}) for claim in volumes.provisions
        )
        for volume, _ in bindings:
            self._volumes.assume(volume)
        for claim in provisions:
            self._claims.assume(claim)
        self._reserved[pod.uid] = PodVolumes(bindings, provisions)

    def unreserve(self, pod: PodInfo, node_name: str) -> None:
        volumes = self._reserved.pop(pod.uid, PodVolumes())
        for volume, _ in volumes.bindings:
            self._volumes.forget(name_of(volume))
        for claim in volumes.provisions:
            self._claims.forget(f"{pod.namespace}/{name_of(claim)}")

    async def pre_bind(self, pod: PodInfo, node_name: str) -> None:
        """Write the bindings and wait. Raises StatusError, ConnectionFailed or VolumesNotBound."""
        volumes = self._reserved[pod.uid]
        client = self.handle.client
        assert client is not None
        for volume, _ in volumes.bindings:
            await client.for_resource(PERSISTENT_VOLUMES).update(volume)
        for claim in volumes.provisions:
            await client.for_resource(PERSISTENT_VOLUME_CLAIMS, namespace=pod.namespace).update(claim)
        deadline, pause = self.handle.clock.now() + BIND_TIMEOUT, _FIRST_LOOK
        while not self._are_bound(pod, node_name, volumes):
            if self.handle.clock.now() >= deadline:
                raise VolumesNotBound("binding volumes: context deadline exceeded")
            await self.handle.clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        del self._reserved[pod.uid]

    def _are_bound(self, pod: PodInfo, node_name: str, volumes: PodVolumes) -> bool:
        """Return whether all volumes are bound. Raises VolumesNotBound if binding has become impossible."""
        listers, node = self.handle.listers, self.handle.cache.node(node_name)
        if node is None:
            raise VolumesNotBound(f'binding volumes: failed to get node "{node_name}": node "{node_name}" not found')
        current = listers.pods.get_by_key(pod.key)
        if current is None or has_ended(current):
            raise VolumesNotBound(f'binding volumes: pod does not exist any more: pod "{pod.name}" not found')
        claims = [*(claim for _, claim in volumes.bindings), *volumes.provisions]
        return all(self._is_bound(claim, node) for claim in claims)

    def _is_bound(self, claim: Json, node: NodeInfo) -> bool:
        name = name_of(claim)
        current = self.handle.listers.claims.get_by_key(f"{namespace_of(claim)}/{name}")
        if current is None:
            raise VolumesNotBound(f'binding volumes: failed to check provisioning pvc: could not find "{name}"')
        wanted = annotations_of(claim).get(matching.SELECTED_NODE)
        moved = resource_version_of(current) != resource_version_of(claim)
        if wanted and moved and annotations_of(current).get(matching.SELECTED_NODE) != wanted:
            raise VolumesNotBound(f'binding volumes: provisioning failed for PVC "{name}"')
        if not is_bound(current):
            return False
        volume = self.handle.listers.volumes.get_by_key(current["spec"]["volumeName"])
        if volume is not None and not is_reachable(volume, node):
            where = f'pv "{name_of(volume)}" node affinity doesn\'t match node "{node.name}"'
            raise VolumesNotBound(f"binding volumes: {where}")
        return volume is not None


def uses_claim(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    """Return whether the changed claim belongs to the pod."""
    return new is not None and f"{namespace_of(new)}/{name_of(new)}" in pod.claim_keys


def _bound_volume(volume: Json, claim: Json) -> Json:
    """Return the volume with the claim reference; the volume controllers complete the binding."""
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
        "resourceVersion": resource_version_of(claim),
    }
    reserved = matching.is_bound_to(volume, claim)
    named = volume if reserved else matching.with_annotations(volume, **{matching.BOUND_BY_CONTROLLER: "yes"})
    return {**named, "spec": {**volume["spec"], "claimRef": reference}}

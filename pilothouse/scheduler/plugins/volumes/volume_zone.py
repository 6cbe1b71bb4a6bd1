"""VolumeZone: restricts the pod to the zones and regions in the labels of its volumes."""

from __future__ import annotations

from pilothouse.controllers.volume.persistentvolume.matching import class_of_claim
from pilothouse.machinery.objects import labels_of
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import Plugin, PreFiltered
from pilothouse.scheduler.plugins.volumes.pod_claims import waits_for_consumer
from pilothouse.scheduler.plugins.volumes.volume_binding import uses_claim

_NOW = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_LABELS = (*_NOW, *_NOW.values())


class VolumeZone(Plugin):
    name = "VolumeZone"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.STORAGE_CLASS, Action.ADD),
            EventHint(Subject.NODE, Action.ADD | Action.LABELS),
            EventHint(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, uses_claim),
            EventHint(Subject.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE),
        )
        self._rejection = self.reject("node(s) had no available volume zone", final=True)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        requirements: list[tuple[str, frozenset[str]]] = []
        for key in pod.claim_keys:
            zones = self._zones(key)
            if isinstance(zones, Rejection):
                return zones
            requirements += zones
        if not requirements:
            return None
        rejection = self._rejection

        def check(node: NodeInfo) -> Rejection | None:
            if not any(label in node.labels for label in _LABELS):
                return None
            for label, values in requirements:
                if node.labels.get(label, node.labels.get(_NOW.get(label, label))) not in values:
                    return rejection
            return None

        return check

    def _zones(self, key: str) -> list[tuple[str, frozenset[str]]] | Rejection:
        """Return the zones and regions of the claim's volume; empty for claims with delayed binding."""
        listers = self.handle.listers
        claim = listers.claims.get_by_key(key)
        if claim is None:
            return []  # VolumeBinding reports the missing claim
        name = claim["spec"].get("volumeName")
        if not name:
            class_name = class_of_claim(claim)
            waits = waits_for_consumer(claim, listers.storage_classes)
            if not class_name:
                return self.reject("PersistentVolumeClaim had no pv name and storageClass name", final=True)
            if self.handle.listers.storage_classes.get_by_key(class_name) is None:
                return self.reject(f'storageclass.storage.k8s.io "{class_name}" not found', final=True)
            return [] if waits else self.reject("PersistentVolume had no name", final=True)
        volume = listers.volumes.get_by_key(name)
        if volume is None:
            return self.reject(f'persistentvolume "{name}" not found', final=True)
        labels = labels_of(volume)
        return [(label, frozenset(labels[label].split("__"))) for label in _LABELS if label in labels]

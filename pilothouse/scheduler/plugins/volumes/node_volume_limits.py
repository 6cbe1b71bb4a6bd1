"""NodeVolumeLimits: limits the volumes of a CSI driver per node, according to the CSINode."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.controllers.volume.persistentvolume.matching import class_of_claim
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import Plugin, PreFiltered
from pilothouse.scheduler.plugins.volumes.volume_binding import uses_claim


class NodeVolumeLimits(Plugin):
    name = "NodeVolumeLimits"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.CSI_NODE, Action.ADD | Action.UPDATE),
            EventHint(Subject.ASSIGNED_POD, Action.DELETE),
            EventHint(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, uses_claim),
            EventHint(Subject.VOLUME_ATTACHMENT, Action.DELETE),
        )
        self._rejection = self.reject("node(s) exceed max volume count")

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        wanted = set(self._volumes(pod)) if pod.claim_keys else set()
        if not wanted:
            return None
        rejection = self._rejection

        def check(node: NodeInfo) -> Rejection | None:
            csi_node = self.handle.listers.csi_nodes.get_by_key(node.name) or {}
            drivers = (csi_node.get("spec") or {}).get("drivers") or ()
            counts = ((driver["name"], (driver.get("allocatable") or {}).get("count")) for driver in drivers)
            limits = {name: count for name, count in counts if count is not None}
            if not limits:
                return None
            attached = {volume for pod in node.pods.values() if pod.claim_keys for volume in self._volumes(pod)}
            new = wanted - attached
            for driver in {driver for driver, _ in new} & limits.keys():
                if sum(name == driver for name, _ in attached | new) > limits[driver]:
                    return rejection
            return None

        return check

    def _volumes(self, pod: PodInfo) -> Iterator[tuple[str, str]]:
        """Yield (driver, handle) of the volumes of the pod's claims; unprovisioned volumes get a synthetic handle."""
        listers = self.handle.listers
        for key in pod.claim_keys:
            claim = listers.claims.get_by_key(key)
            if claim is None:
                continue
            volume = listers.volumes.get_by_key(claim["spec"].get("volumeName") or "")
            if volume is not None:
                if csi := volume["spec"].get("csi"):
                    yield csi["driver"], csi["volumeHandle"]
            elif (storage_class := listers.storage_classes.get_by_key(class_of_claim(claim))) is not None:
                yield storage_class.get("provisioner") or "", f"{key}-to-be-made"

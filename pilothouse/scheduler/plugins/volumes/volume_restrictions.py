"""VolumeRestrictions: disks that one node may attach, and ReadWriteOncePod claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import CountingFilter, Plugin, PreFiltered
from pilothouse.scheduler.plugins.volumes.volume_binding import uses_claim


def _both_read(one: Json, other: Json) -> bool:
    return bool(one.get("readOnly") and other.get("readOnly"))


def _is_same_image(one: Json, other: Json) -> bool:
    same = (one.get("pool"), one.get("image")) == (other.get("pool"), other.get("image"))
    return same and not set(one["monitors"]).isdisjoint(other["monitors"])


_CONFLICTS: dict[str, Callable[[Json, Json], bool]] = {
    "gcePersistentDisk": lambda one, other: one["pdName"] == other["pdName"] and not _both_read(one, other),
    "awsElasticBlockStore": lambda one, other: bool(one["volumeID"] == other["volumeID"]),
    "iscsi": lambda one, other: one["iqn"] == other["iqn"] and not _both_read(one, other),
    "rbd": lambda one, other: _is_same_image(one, other) and not _both_read(one, other),
}


class VolumeRestrictions(Plugin):
    name = "VolumeRestrictions"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.ASSIGNED_POD, Action.DELETE),
            EventHint(Subject.NODE, Action.ADD),
            EventHint(Subject.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, uses_claim),
        )
        self.disk_taken = self.reject("node(s) had no available disk")
        self.claim_taken = self.reject(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by"
            " another pod"
        )

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        volumes = pod.spec.get("volumes") or ()
        disks = [(kind, volume[kind]) for volume in volumes for kind in _CONFLICTS if volume.get(kind)]
        alone = frozenset(key for key in pod.claim_keys if self._is_for_one_pod(key))
        taken = sum(node.claims.get(key, 0) for key in alone for node in self.handle.cache.nodes) if alone else 0
        return _RestrictionFilter(self, disks, alone, taken) if disks or taken else None

    def _is_for_one_pod(self, key: str) -> bool:
        claim = self.handle.listers.claims.get_by_key(key)
        return claim is not None and "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ())


class _RestrictionFilter(CountingFilter):
    def __init__(
        self, plugin: VolumeRestrictions, disks: list[tuple[str, Json]], alone: frozenset[str], taken: int
    ) -> None:
        """`taken`: number of pods that use the pod's ReadWriteOncePod claims."""
        self._plugin, self._disks, self._alone, self._taken = plugin, disks, alone, taken

    def __call__(self, node: NodeInfo, /) -> Rejection | None:
        if self._disks and any(self._conflicts(pod) for pod in node.pods.values()):
            return self._plugin.disk_taken
        return self._plugin.claim_taken if self._taken > 0 else None

    def copy(self) -> Self:
        return type(self)(self._plugin, self._disks, self._alone, self._taken)

    def count(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        self._taken += sign * len(self._alone.intersection(pod.claim_keys))

    def _conflicts(self, pod: PodInfo) -> bool:
        for volume in pod.spec.get("volumes") or ():
            for kind, disk in self._disks:
                if volume.get(kind) and _CONFLICTS[kind](disk, volume[kind]):
                    return True
        return False

"""Cluster changes that may make a rejected pod schedulable.

A plugin registers the kinds of changes that can revoke its rejections (EventHint). A change of an object becomes one or
more ClusterEvents; a pod is retried only for an event that a rejecting plugin registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, Flag, auto
from typing import TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, labels_of
from pilothouse.scheduler.cache.pod_info import PodInfo


class Subject(Enum):
    NODE = "Node"
    ASSIGNED_POD = "AssignedPod"
    PENDING_POD = "UnscheduledPod"
    """The rejected pod itself."""
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    PERSISTENT_VOLUME = "PersistentVolume"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    ANYTHING = "*"


class Action(Flag):
    ADD = auto()
    DELETE = auto()
    UPDATE = auto()
    """A change without a more specific action."""
    ALLOCATABLE = auto()
    LABELS = auto()
    TAINTS = auto()
    CONDITIONS = auto()
    ANNOTATIONS = auto()
    FEATURES = auto()
    """The node declares other features."""
    SCALED_DOWN = auto()
    TOLERATIONS = auto()
    GATES_ELIMINATED = auto()
    GENERATED_CLAIMS = auto()
    """ResourceClaims were generated for the pod."""
    ANY = ADD | DELETE | UPDATE | ALLOCATABLE | LABELS | TAINTS | CONDITIONS | ANNOTATIONS | FEATURES


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    subject: Subject
    action: Action


IsWorthTrying: TypeAlias = Callable[[PodInfo, Json | None, Json | None], bool]
"""Called with the rejected pod, the old object (None after a create) and the new object (None after a delete)."""


@dataclass(frozen=True, slots=True)
class EventHint:
    """A kind of change that may revoke a plugin's rejection, unless `is_worth_trying` returns False."""

    subject: Subject
    actions: Action
    is_worth_trying: IsWorthTrying | None = None

    def concerns(self, event: ClusterEvent) -> bool:
        return event.subject in (self.subject, Subject.ANYTHING) and bool(event.action & self.actions)


NODE_ADDED = ClusterEvent(Subject.NODE, Action.ADD)
POD_ADDED = ClusterEvent(Subject.ASSIGNED_POD, Action.ADD)
POD_DELETED = ClusterEvent(Subject.ASSIGNED_POD, Action.DELETE)
TIMED_OUT = ClusterEvent(Subject.ANYTHING, Action.ANY)
"""Retry without a cause, after a long time in the queue."""


def node_changes(old: Json, new: Json) -> Iterator[ClusterEvent]:
    """Yield the events of a node update; heartbeats yield no event."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    old_status, new_status = old.get("status") or {}, new.get("status") or {}
    freed = bool(old_spec.get("unschedulable")) and not new_spec.get("unschedulable")
    changed = {
        Action.TAINTS: freed or (old_spec.get("taints") or []) != (new_spec.get("taints") or []),
        Action.ALLOCATABLE: old_status.get("allocatable") != new_status.get("allocatable"),
        Action.LABELS: labels_of(old) != labels_of(new),
        Action.CONDITIONS: _condition_statuses(old_status) != _condition_statuses(new_status),
        Action.ANNOTATIONS: annotations_of(old) != annotations_of(new),
        Action.FEATURES: old_status.get("declaredFeatures") != new_status.get("declaredFeatures"),
    }
    for action, happened in changed.items():
        if happened:
            yield ClusterEvent(Subject.NODE, action)


def pod_changes(old: PodInfo, new: PodInfo) -> Iterator[ClusterEvent]:
    """Yield the events of a pod update: AssignedPod events concern other pods, UnscheduledPod events the pod itself."""
    subject = Subject.ASSIGNED_POD if new.node_name else Subject.PENDING_POD
    changed = {
        Action.LABELS: old.labels != new.labels,
        Action.SCALED_DOWN: any(amount > new.requests.get(name, 0) for name, amount in old.requests.items()),
        Action.GATES_ELIMINATED: bool(old.spec.get("schedulingGates")) and not new.spec.get("schedulingGates"),
        Action.TOLERATIONS: len(old.spec.get("tolerations") or ()) != len(new.spec.get("tolerations") or ()),
        Action.GENERATED_CLAIMS: old.status.get("resourceClaimStatuses") != new.status.get("resourceClaimStatuses"),
    }
    actions = [action for action, happened in changed.items() if happened] or [Action.UPDATE]
    for action in actions:
        yield ClusterEvent(subject, action)


def _condition_statuses(status: Json) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in status.get("conditions") or ()}

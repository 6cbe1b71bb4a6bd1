"""The two replicated kinds: ReplicaSet and its predecessor, ReplicationController."""

from __future__ import annotations

from pilothouse.controllers.resources import REPLICA_SETS, REPLICATION_CONTROLLERS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.labels import Selector, from_label_selector


@dataclass(frozen=True, slots=True)
class ReplicatedKind:
    resource: GroupVersionResource
    kind: str
    component: str
    """Source component of events."""
    queue: str
    counts_terminating: bool
    """Whether the status has terminatingReplicas."""
    has_plain_selector: bool = False
    """Whether the selector is a plain label map."""

    def selector_of(self, obj: Json) -> Selector:
        """Return the selector of the object. Raises InvalidSelector."""
        selector = obj["spec"].get("selector")
        return from_label_selector({"matchLabels": selector} if self.has_plain_selector else selector)


REPLICA_SET = ReplicatedKind(REPLICA_SETS, "ReplicaSet", "replicaset-controller", "replicaset", counts_terminating=True)
REPLICATION_CONTROLLER = ReplicatedKind(
    REPLICATION_CONTROLLERS,
    "ReplicationController",
    "replication-controller",
    "replicationmanager",
    counts_terminating=False,
    has_plain_selector=True,
)

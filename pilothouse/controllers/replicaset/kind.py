"""The two kinds that want a number of pods of one template: replica sets, and their elder, replication controllers."""

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
    """The source of its events."""
    queue: str
    counts_terminating: bool
    """Whether its status has a place for the pods that are about to go."""
    has_plain_selector: bool = False
    """Whether its selector is nothing but labels."""

    def selector_of(self, obj: Json) -> Selector:
        """Raises InvalidSelector."""
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

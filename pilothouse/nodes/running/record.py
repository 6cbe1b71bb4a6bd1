"""The record of a followed pod."""

from __future__ import annotations

from dataclasses import field

from pilothouse.kinds.deletion import is_deleted_without_grace, is_deleting
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, items, part, resource_version_of
from pilothouse.nodes.pods.state import PodState
from pilothouse.nodes.pods.world import Exceeded, Obstacle, Refusal


@dataclass(slots=True)
class Record:
    pod: Json
    """Newest known version; owned by the cache, never modified."""
    node: str
    state: PodState
    address: str = ""
    """Pod address from the node's range; empty for host network or before allocation."""
    is_cleared: bool = False
    """Whether all prerequisites exist."""
    obstacle: Obstacle | None = None
    refusal: Refusal | None = None
    exceeded: dict[str, Exceeded] = field(default_factory=dict)
    """Containers that exceeded their budget."""
    start_errors: dict[str, str] = field(default_factory=dict)
    """Containers that cannot be started → reason."""
    tries: int = 0
    """Number of prerequisite checks."""
    follows_stages: bool = False
    """Whether stages, not the state machine, drove the last change."""
    is_busy: bool = False
    heard: set[str] = field(default_factory=set)
    """Versions from other writers received during a step."""
    written: str = ""
    """Version of the last write."""

    @property
    def is_deleting(self) -> bool:
        return is_deleting(self.pod)

    @property
    def must_be_removed(self) -> bool:
        """Return whether the deleted pod waits for its node's confirmation."""
        return is_deleting(self.pod) and not is_deleted_without_grace(self.pod)

    def take(self, pod: Json) -> None:
        """Replace the pod by a newer version; older versions are ignored."""
        if _version(pod) >= _version(self.pod):
            self.pod = pod


def is_set_back(old: Json, new: Json) -> bool:
    """Return whether the pod went back in time, as after restoring a snapshot; the node's memory is invalid then."""
    lost = any(fact(old) and not fact(new) for fact in (is_deleting, _has_started))
    return lost or node_name(old) not in ("", node_name(new)) or _restarts(new) < _restarts(old)


def _has_started(pod: Json) -> bool:
    return bool(part(pod, "status").get("startTime"))


def _restarts(pod: Json) -> int:
    containers = items(pod, "status", "containerStatuses")
    return sum(each.get("restartCount") or 0 for each in containers)


def _version(pod: Json) -> int:
    return int(resource_version_of(pod) or 0)

"""A pod that is being followed."""

from __future__ import annotations

from dataclasses import field

from pilothouse.kinds.deletion import is_deleted_without_grace, is_deleting
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, resource_version_of
from pilothouse.nodes.pods.state import PodState
from pilothouse.nodes.pods.world import Exceeded, Obstacle, Refusal


@dataclass(slots=True)
class Record:
    pod: Json
    """The newest that is known; it belongs to the cache and is never changed."""
    node: str
    state: PodState
    address: str = ""
    """The pod's own address out of its node's range; empty for one that has its node's, or none yet."""
    is_cleared: bool = False
    """Whether all is there that the pod can not start without."""
    obstacle: Obstacle | None = None
    refusal: Refusal | None = None
    exceeded: dict[str, Exceeded] = field(default_factory=dict)
    """Containers that exceed their budget."""
    start_errors: dict[str, str] = field(default_factory=dict)
    """Containers that the kernel does not start, and why."""
    tries: int = 0
    """How often it was looked whether all is there."""
    follows_stages: bool = False
    """Whether stages have said last what became of it, and not the state."""
    is_busy: bool = False
    heard: set[str] = field(default_factory=set)
    """The versions that others told of while it was busy."""
    written: str = ""
    """The version of the last write."""

    @property
    def is_deleting(self) -> bool:
        return is_deleting(self.pod)

    @property
    def must_be_removed(self) -> bool:
        """Whether the object waits for its node to say that nothing is left of the pod."""
        return is_deleting(self.pod) and not is_deleted_without_grace(self.pod)

    def take(self, pod: Json) -> None:
        """A pod is replaced only by a newer one."""
        if _version(pod) >= _version(self.pod):
            self.pod = pod


def is_set_back(old: Json, new: Json) -> bool:
    """Whether the pod is what it was before, as after the restore of a snapshot: what its node remembers of it did not
    happen, then. No pod gets there by itself."""
    lost = any(fact(old) and not fact(new) for fact in (is_deleting, _has_started))
    return lost or node_name(old) not in ("", node_name(new)) or _restarts(new) < _restarts(old)


def _has_started(pod: Json) -> bool:
    return bool((pod.get("status") or {}).get("startTime"))


def _restarts(pod: Json) -> int:
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(each.get("restartCount") or 0 for each in containers)


def _version(pod: Json) -> int:
    return int(resource_version_of(pod) or 0)

"""A pod that waits, and how often and why it was rejected."""

from __future__ import annotations

from dataclasses import field

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scheduler.cache.pod_info import PodInfo


@dataclass(slots=True, eq=False)
class QueuedPod:
    pod: PodInfo
    since: float
    """When it was added to the queue this time. Among pods of one priority the first comes first."""
    attempts: int = 0
    unschedulable_count: int = 0
    """How often it was rejected: the more often, the longer it must wait."""
    errors_in_a_row: int = 0
    rejected_by: frozenset[str] = field(default_factory=frozenset)
    """The plugins of whose rejection something must change before another attempt is worth it."""
    gated_by: str = ""
    """The plugin that does not let it be tried at all."""

    @property
    def order(self) -> tuple[int, float]:
        """Which of two comes first: the one of greater priority, then the one that has waited longer."""
        return -self.pod.priority, self.since

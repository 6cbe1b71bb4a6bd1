"""A pending pod with its attempts and rejections."""

from __future__ import annotations

from dataclasses import field

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scheduler.cache.pod_info import PodInfo


@dataclass(slots=True, eq=False)
class QueuedPod:
    pod: PodInfo
    since: float
    """Time of the last enqueue. Pods of equal priority are ordered by this time."""
    attempts: int = 0
    unschedulable_count: int = 0
    """Number of rejections; determines the back-off."""
    errors_in_a_row: int = 0
    rejected_by: frozenset[str] = field(default_factory=frozenset)
    """Plugins that rejected the pod; an event of one of them triggers a retry."""
    gated_by: str = ""
    """PreEnqueue plugin that blocks the pod."""

    @property
    def order(self) -> tuple[int, float]:
        """Sort key: higher priority first, then earlier enqueue."""
        return -self.pod.priority, self.since

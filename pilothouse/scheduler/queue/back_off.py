"""How long a pod that was rejected must wait at least: a second, then twice as long each time, up to ten.

Times are rounded up to whole seconds, so that pods whose turns come at about the same time are ordered by priority.
"""

from __future__ import annotations

from math import ceil

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scheduler.queue.queued_pod import QueuedPod

_WINDOW = 1.0


@dataclass(frozen=True, slots=True)
class BackOff:
    initial: float = 1.0
    greatest: float = 10.0

    def ends(self, queued: QueuedPod) -> float:
        """Return when the pod may be tried again."""
        times = queued.errors_in_a_row or queued.unschedulable_count
        if times == 0:
            return queued.since
        duration = min(self.initial * float(1 << min(times - 1, 30)), self.greatest)
        return ceil((queued.since + duration) / _WINDOW) * _WINDOW

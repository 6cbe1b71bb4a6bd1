"""How long a pod that was rejected must wait at least: a second, then twice as long each time, up to ten.

Times are rounded up to whole seconds, so that pods whose turns come at about the same time are ordered by priority.
While nobody else waits, a tenth is enough: upstream waits not at all then, but it has the processor for itself.
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
        duration = self._duration(queued)
        return ceil((queued.since + duration) / _WINDOW) * _WINDOW if duration else queued.since

    def may_be_cut_short(self, queued: QueuedPod) -> float:
        """Return from when on it may be tried again if nobody else waits."""
        return queued.since + self._duration(queued) / 10

    def _duration(self, queued: QueuedPod) -> float:
        times = queued.errors_in_a_row or queued.unschedulable_count
        return min(self.initial * float(1 << min(times - 1, 30)), self.greatest) if times else 0.0

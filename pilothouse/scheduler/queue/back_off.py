"""Back-off of rejected pods: one second, doubled with each rejection, at most ten seconds.

Times are rounded up to whole seconds, so pods with nearly equal times are ordered by priority. While no other pod
waits, a tenth of the time suffices; upstream then waits not at all, but has a processor to itself.
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
        """Return the end of the pod's back-off."""
        duration = self._duration(queued)
        return ceil((queued.since + duration) / _WINDOW) * _WINDOW if duration else queued.since

    def may_be_cut_short(self, queued: QueuedPod) -> float:
        """Return the earliest retry time while no other pod waits."""
        return queued.since + self._duration(queued) / 10

    def _duration(self, queued: QueuedPod) -> float:
        times = queued.errors_in_a_row or queued.unschedulable_count
        return min(self.initial * float(1 << min(times - 1, 30)), self.greatest) if times else 0.0

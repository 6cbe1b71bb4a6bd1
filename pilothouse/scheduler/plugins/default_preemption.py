"""DefaultPreemption, PreEnqueue part: blocks a pod until the evictions of its preemption have started.

`preemption/` selects the victims.
"""

from __future__ import annotations

from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.plugins.interface import Plugin


class DefaultPreemption(Plugin):
    name = "DefaultPreemption"

    def pre_enqueue(self, pod: PodInfo) -> str | None:
        if pod.uid not in self.handle.preempting:
            return None
        return "waiting for the preemption for this pod to be finished"

"""DefaultPreemption, as far as the queue is concerned: a pod waits until the deletions that it caused have begun.

How pods are found that have to go is in `preemption/`.
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

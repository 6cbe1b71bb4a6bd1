"""SchedulingGates: a pod with gates stays out of the active queue."""

from __future__ import annotations

from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.plugins.interface import Plugin


class SchedulingGates(Plugin):
    name = "SchedulingGates"
    events = (EventHint(Subject.PENDING_POD, Action.GATES_ELIMINATED),)

    def pre_enqueue(self, pod: PodInfo) -> str | None:
        gates = [gate["name"] for gate in pod.spec.get("schedulingGates") or ()]
        return f"waiting for scheduling gates: [{' '.join(gates)}]" if gates else None

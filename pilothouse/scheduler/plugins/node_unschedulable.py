"""NodeUnschedulable: cordoned nodes accept only pods that tolerate the unschedulable taint."""

from __future__ import annotations

from pilothouse.kinds.tolerations import NO_SCHEDULE, any_tolerates
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import Plugin, PreFiltered

_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE}


class NodeUnschedulable(Plugin):
    name = "NodeUnschedulable"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.NODE, Action.ADD | Action.TAINTS, _is_schedulable_now),
            EventHint(Subject.PENDING_POD, Action.TOLERATIONS),
        )
        self._rejection = self.reject("node(s) were unschedulable", final=True)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not self.handle.cache.unschedulable or any_tolerates(pod.spec.get("tolerations") or (), _TAINT):
            return None
        rejection = self._rejection

        def check(node: NodeInfo) -> Rejection | None:
            return rejection if node.is_unschedulable else None

        return check


def _is_schedulable_now(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    if new is None or (new.get("spec") or {}).get("unschedulable"):
        return False
    return old is None or bool((old.get("spec") or {}).get("unschedulable"))

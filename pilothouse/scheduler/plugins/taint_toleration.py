"""TaintToleration: rejects nodes with untolerated taints, and scores PreferNoSchedule taints."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kinds.tolerations import PREFER_NO_SCHEDULE, first_untolerated, untolerated
from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import Plugin, PreFiltered, normalized


class TaintToleration(Plugin):
    name = "TaintToleration"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.NODE, Action.ADD | Action.TAINTS, _is_tolerated_now),
            EventHint(Subject.PENDING_POD, Action.TOLERATIONS),
        )
        self._rejection = self.reject("node(s) had untolerated taint(s)", final=True)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not self.handle.cache.tainted:
            return None
        rejection, tolerations = self._rejection, pod.spec.get("tolerations") or ()

        def check(node: NodeInfo) -> Rejection | None:
            return rejection if node.taints and first_untolerated(node.taints, tolerations) is not None else None

        return check

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        tainted = self.handle.cache.tainted
        if not tainted:
            return None
        effects = ("", PREFER_NO_SCHEDULE)
        tolerations = [
            toleration
            for toleration in pod.spec.get("tolerations") or ()
            if (toleration.get("effect") or "") in effects
        ]
        counts = [
            sum(1 for _ in untolerated(node.taints, tolerations, (PREFER_NO_SCHEDULE,))) if node.taints else 0
            for node in nodes
        ]
        return normalized(counts, reverse=True) if any(counts) else None


def _is_tolerated_now(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    def is_tolerated(node: Json) -> bool:
        taints = (node.get("spec") or {}).get("taints") or ()
        return first_untolerated(taints, pod.spec.get("tolerations") or ()) is None

    return new is not None and is_tolerated(new) and (old is None or not is_tolerated(old))

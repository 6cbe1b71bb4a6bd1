"""NodeName: a pod with `spec.nodeName` fits that node only."""

from __future__ import annotations

from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.plugins.interface import Plugin, PreFiltered


class NodeName(Plugin):
    name = "NodeName"
    events = (EventHint(Subject.NODE, Action.ADD),)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not pod.node_name:
            return None
        rejection, wanted = self.reject("node(s) didn't match the requested node name", final=True), pod.node_name
        return lambda node: None if node.name == wanted else rejection

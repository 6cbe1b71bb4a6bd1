"""NodeDeclaredFeatures: a pod fits nodes that declare the features of the pod."""

from __future__ import annotations

from pilothouse.kinds.nodes import declared_features, features_of_pod
from pilothouse.machinery import version_rules
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.interface import Plugin, PreFiltered


class NodeDeclaredFeatures(Plugin):
    name = "NodeDeclaredFeatures"
    events = (EventHint(Subject.NODE, Action.ADD | Action.FEATURES),)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        wanted = features_of_pod(pod.spec)
        if not wanted or not version_rules.holds("ScheduledByFeatures"):
            return None
        rejection = self.reject("node(s) didn't match Pod's required features", final=True)

        def check(node: NodeInfo) -> Rejection | None:
            return None if wanted <= declared_features(node.node or {}) else rejection

        return check

"""NodeAffinity: node selectors and node affinity, required and preferred."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kinds.node_affinity import PreferredTerms, node_affinity_of, required_node_affinity
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import OnlyNodes, Plugin, PreFiltered, normalized

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinity(Plugin):
    name = "NodeAffinity"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (EventHint(Subject.NODE, Action.ADD | Action.LABELS, _matches_now),)
        self._rejection = self.reject("node(s) didn't match Pod's node affinity/selector", final=True)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not pod.spec.get("nodeSelector") and not node_affinity_of(pod.pod).get(_REQUIRED):
            return None
        rejection, required = self._rejection, required_node_affinity(pod.pod)

        def check(node: NodeInfo) -> Rejection | None:
            assert node.node is not None
            return None if required.matches(node.node) else rejection

        names = required.node_names
        if names is None:
            return check
        return OnlyNodes(names, check) if names else self.reject("pod affinity terms conflict", final=True)

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        preferred = node_affinity_of(pod.pod).get(_PREFERRED)
        if not preferred:
            return None
        try:
            terms = PreferredTerms.read(preferred)
        except InvalidSelector:
            return None
        return normalized([terms.score(node.node or {}) for node in nodes])


def _matches_now(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    required = required_node_affinity(pod.pod)
    return new is not None and required.matches(new) and (old is None or not required.matches(old))

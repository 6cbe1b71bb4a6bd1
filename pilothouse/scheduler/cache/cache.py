"""The nodes and their pods as the API shows them, and ahead of it: a pod counts from the moment its node is chosen.

A pod is assumed when a node was chosen for it, confirmed when the API shows it there, forgotten when it could not be
bound. There is no snapshot, as upstream has one: a cycle never awaits, so nothing changes here while it reads.

          assume             the informer shows it
    none ────────▶ assumed ──────────────────────▶ confirmed ──▶ none
      ▲───────────────┘ forget                         (removed)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pilothouse.machinery.objects import Json, labels_of, name_of
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.node_order import in_turns_of_zones
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cache.tallies import Contribution, Tallies, Tally


class Cache:
    _nodes: dict[str, NodeInfo]  # also nodes that are not known, while pods are on them
    _pods: dict[str, PodInfo]  # by uid; each is in the NodeInfo of its node
    _assumed: set[str]  # uids of `_pods` that the API has not shown on their nodes yet
    _order: list[NodeInfo] | None  # the known nodes; None when it must be made anew
    image_nodes: dict[str, int]  # on how many nodes an image is; none has 0

    def __init__(self) -> None:
        self._nodes, self._pods, self._assumed = {}, {}, set()
        self._order, self._tallies = [], Tallies()
        self._places: dict[str, dict[str, int]] = {}
        self.image_nodes = {}
        self.with_affinity: dict[str, NodeInfo] = {}
        self.with_required_anti_affinity: dict[str, NodeInfo] = {}
        self.tainted: dict[str, NodeInfo] = {}
        self.unschedulable: dict[str, NodeInfo] = {}

    @property
    def nodes(self) -> list[NodeInfo]:
        """All known nodes, in the order in which they are to be looked at."""
        if self._order is None:
            self._order = in_turns_of_zones(each for each in self._nodes.values() if each.node is not None)
        return self._order

    def tally(self, key: str, contribution: Contribution, nodes: Iterable[NodeInfo] | None = None) -> Tally:
        """Return a sum over all nodes, by place, or over these, if no others have anything to contribute now.

        Equal keys stand for equal contributions.
        """
        return self._tallies.get(key, contribution, self.nodes if nodes is None else nodes)

    def places(self, label: str) -> dict[str, int]:
        """Return how many nodes there are at each place that the label names."""
        if label not in self._places:
            values = (node.labels[label] for node in self.nodes if label in node.labels)
            self._places[label] = dict(Counter(values))
        return self._places[label]

    def node(self, name: str) -> NodeInfo | None:
        """None if the node is not known."""
        found = self._nodes.get(name)
        return found if found is not None and found.node is not None else None

    def pod(self, uid: str) -> PodInfo | None:
        return self._pods.get(uid)

    def pods(self) -> Iterable[PodInfo]:
        return self._pods.values()

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def set_node(self, node: Json) -> NodeInfo:
        """Add the node, or bring it up to date."""
        info = self._info(name_of(node))
        if info.node is None or info.labels != labels_of(node):
            self._set_layout_changed()
        self._count_images(info.images, -1)
        info.set_node(node)
        self._count_images(info.images, 1)
        _keep(self.tainted, info, bool(info.taints))
        _keep(self.unschedulable, info, info.is_unschedulable)
        self._note(info)
        return info

    def forget_answers(self) -> None:
        """Something changed that answers kept with the nodes may depend on."""
        self._set_layout_changed()
        for info in self._nodes.values():
            info.memo = {}

    def remove_node(self, name: str) -> None:
        info = self._nodes.get(name)
        if info is None:
            return
        self._count_images(info.images, -1)
        info.images = {}
        info.remove_node()
        self._set_layout_changed()
        _keep(self.tainted, info, False)
        _keep(self.unschedulable, info, False)
        self._note(info)
        self._drop_if_empty(info)

    def assume(self, pod: PodInfo) -> None:
        """Count the pod for the node that it names."""
        self._add(pod)
        self._assumed.add(pod.uid)

    def forget(self, uid: str) -> None:
        """Take back that a pod was assumed; one that the API has shown stays."""
        if uid in self._assumed:
            self._remove(uid)

    def set_pod(self, pod: PodInfo) -> None:
        """Take the pod as the API shows it on its node: new, confirmed or changed."""
        self._assumed.discard(pod.uid)
        known = self._pods.get(pod.uid)
        if known is None:
            self._add(pod)
        elif known.node_name != pod.node_name:
            self._remove(pod.uid)
            self._add(pod)
        else:
            self._pods[pod.uid] = pod
            info = self._nodes[pod.node_name]
            if info.replace_pod(pod):
                self._tallies.invalidate(info)
                self._note(info)

    def remove_pod(self, uid: str) -> None:
        if uid in self._pods:
            self._remove(uid)

    def _add(self, pod: PodInfo) -> None:
        info = self._info(pod.node_name)
        info.add_pod(pod)
        self._pods[pod.uid] = pod
        self._tallies.invalidate(info)
        self._note(info)

    def _remove(self, uid: str) -> None:
        self._assumed.discard(uid)
        info = self._nodes[self._pods.pop(uid).node_name]
        info.remove_pod(uid)
        self._tallies.invalidate(info)
        self._note(info)
        self._drop_if_empty(info)

    def _info(self, name: str) -> NodeInfo:
        if name not in self._nodes:
            self._nodes[name] = NodeInfo(name)
        return self._nodes[name]

    def _drop_if_empty(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods:
            del self._nodes[info.name]

    def _set_layout_changed(self) -> None:
        self._order = None
        self._tallies.clear()
        self._places = {}

    def _note(self, info: NodeInfo) -> None:
        _keep(self.with_affinity, info, info.node is not None and bool(info.with_affinity))
        anti_affinity = info.node is not None and bool(info.with_required_anti_affinity)
        _keep(self.with_required_anti_affinity, info, anti_affinity)

    def _count_images(self, images: Iterable[str], sign: int) -> None:
        for image in images:
            self.image_nodes[image] = self.image_nodes.get(image, 0) + sign
            if not self.image_nodes[image]:
                del self.image_nodes[image]


def _keep(group: dict[str, NodeInfo], info: NodeInfo, belongs: bool) -> None:
    if belongs:
        group[info.name] = info
    else:
        group.pop(info.name, None)

"""The scheduler cache: nodes and pods from the API, plus assumed pods.

A pod is assumed when a node is selected, confirmed when the API shows the binding, and forgotten when the binding
fails. Unlike upstream there is no snapshot: a cycle never awaits, so the cache cannot change during a cycle.

          assume             informer shows the binding
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
    _nodes: dict[str, NodeInfo]  # includes unknown nodes that have pods
    _pods: dict[str, PodInfo]  # by uid; every pod is also in the NodeInfo of its node
    _assumed: set[str]  # uids of `_pods` whose binding the API has not shown yet
    _order: list[NodeInfo] | None  # known nodes; None = must be rebuilt
    image_nodes: dict[str, int]  # image → number of nodes that have the image, > 0

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
        """Known nodes in search order."""
        if self._order is None:
            self._order = in_turns_of_zones(each for each in self._nodes.values() if each.node is not None)
        return self._order

    def tally(self, key: str, contribution: Contribution, nodes: Iterable[NodeInfo] | None = None) -> Tally:
        """Return the tally over all nodes, or over `nodes` if no other node contributes now.

        Equal keys must denote equal contributions.
        """
        return self._tallies.get(key, contribution, self.nodes if nodes is None else nodes)

    def places(self, label: str) -> dict[str, int]:
        """Return the number of nodes for each value of the label."""
        if label not in self._places:
            values = (node.labels[label] for node in self.nodes if label in node.labels)
            self._places[label] = dict(Counter(values))
        return self._places[label]

    def node(self, name: str) -> NodeInfo | None:
        """Return the node, or None if the node is unknown."""
        found = self._nodes.get(name)
        return found if found is not None and found.node is not None else None

    def pod(self, uid: str) -> PodInfo | None:
        return self._pods.get(uid)

    def pods(self) -> Iterable[PodInfo]:
        return self._pods.values()

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def set_node(self, node: Json) -> NodeInfo:
        """Add or update the node."""
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
        """Drop the memoized plugin answers of all nodes."""
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
        """Count the pod on its node before the API shows the binding."""
        self._add(pod)
        self._assumed.add(pod.uid)

    def forget(self, uid: str) -> None:
        """Undo `assume`. Confirmed pods stay."""
        if uid in self._assumed:
            self._remove(uid)

    def set_pod(self, pod: PodInfo) -> None:
        """Add, confirm or update a bound pod from the API."""
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

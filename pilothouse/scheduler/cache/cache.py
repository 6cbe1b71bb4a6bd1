"""The scheduler cache: nodes and pods from the API, plus assumed and nominated pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest

from pilothouse.machinery.objects import Json, labels_of, name_of
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cache.tallies import Contribution, Tallies, Tally

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


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
            self._order = in_turns_of_zones(node for node in self._nodes.values() if node.node is not None)
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
        node = self._nodes.get(name)
        return node if node is not None and node.node is not None else None

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


def zone_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return (region, zone); empty strings if a node has no such label."""
    return labels.get(_OLD_REGION) or labels.get(REGION, ""), labels.get(_OLD_ZONE) or labels.get(ZONE, "")


def in_turns_of_zones(nodes: Iterable[NodeInfo]) -> list[NodeInfo]:
    """Return the nodes round-robin over zones, so that a partial search covers many zones.

    zone a: a1 a2 a3, zone b: b1   → a1 b1 a2 a3
    """
    zones: dict[tuple[str, str], list[NodeInfo]] = {}
    for node in nodes:
        zones.setdefault(zone_of(node.labels), []).append(node)
    return [node for node in chain.from_iterable(zip_longest(*zones.values())) if node is not None]


class Nominator:
    """Nominated pods: pods that preempted others, counted on their nominated node until bound."""

    _by_node: dict[str, dict[str, PodInfo]]  # node → uid → pod; inner dicts are never empty
    _nodes: dict[str, str]  # uid → node

    def __init__(self) -> None:
        self._by_node, self._nodes = {}, {}

    def set(self, pod: PodInfo, node: str | None = None) -> None:
        """Nominate the pod for `node`, or for the node in its status; without a node, drop the nomination."""
        self.delete(pod.uid)
        chosen = pod.nominated_node if node is None else node
        if chosen:
            self._by_node.setdefault(chosen, {})[pod.uid] = pod
            self._nodes[pod.uid] = chosen

    def delete(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        if node is not None:
            del self._by_node[node][uid]
            if not self._by_node[node]:
                del self._by_node[node]

    def node_of(self, uid: str) -> str:
        """Return the nominated node; empty without a nomination."""
        return self._nodes.get(uid, "")

    def pods_for(self, node: str) -> Iterable[PodInfo]:
        return tuple(self._by_node[node].values()) if node in self._by_node else ()

    def __bool__(self) -> bool:
        return bool(self._nodes)

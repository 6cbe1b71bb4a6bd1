"""Nominated pods: pods that preempted others, counted on their nominated node until bound."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.scheduler.cache.pod_info import PodInfo


class Nominator:
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

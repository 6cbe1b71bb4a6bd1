"""The scheduling cycle: filter nodes, score nodes, select a node for one pod. A cycle never awaits.

In a large cluster the search stops after enough feasible nodes. The next cycle continues at the following node, so
every node gets considered.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.diagnosis import Diagnosis, FitError, NoNodesAvailable, Rejection
from pilothouse.scheduler.framework import Framework, PodFilters
from pilothouse.scheduler.plugins.interface import NodeFilter

_ENOUGH, _LEAST_PERCENT = 100, 5


class SchedulingCycle:
    def __init__(self, framework: Framework, *, percentage_of_nodes_to_score: int = 0) -> None:
        """Without a percentage, the share of nodes to score shrinks as the cluster grows."""
        self._framework, self._handle = framework, framework.handle
        self._percentage = percentage_of_nodes_to_score
        self._start = 0

    def find_node(self, pod: PodInfo) -> NodeInfo:
        """Return the best node for the pod. Raises NoNodesAvailable or FitError."""
        nodes = self._handle.cache.nodes
        if not nodes:
            raise NoNodesAvailable()
        diagnosis = Diagnosis()
        filters = self._framework.pre_filter(pod)
        if isinstance(filters, Rejection):
            diagnosis.for_absent, diagnosis.pre_filter_message = filters, filters.message
            diagnosis.plugins.add(filters.plugin)
            raise FitError(diagnosis, len(nodes))
        fitting = self._nominated_node(pod, filters) or self._search(pod, filters, nodes, diagnosis)
        if not fitting:
            raise FitError(diagnosis, len(nodes))
        if len(fitting) == 1:
            return fitting[0]
        scores = self._framework.scores(pod, fitting)
        best = max(scores)
        return self._handle.random.choice([node for node, score in zip(fitting, scores, strict=True) if score == best])

    def _nominated_node(self, pod: PodInfo, filters: PodFilters) -> list[NodeInfo]:
        """Return the nominated node of the pod if the node is feasible now, else an empty list."""
        node = self._handle.cache.node(pod.nominated_node) if pod.nominated_node else None
        return [node] if node is not None and check_with_nominated(pod, node, filters, self._framework) is None else []

    def _search(
        self, pod: PodInfo, filters: PodFilters, nodes: Sequence[NodeInfo], diagnosis: Diagnosis
    ) -> list[NodeInfo]:
        if filters.names is not None:
            named = (self._handle.cache.node(name) for name in sorted(filters.names))
            nodes = [node for node in named if node is not None]
            text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(filters.narrowed_by))}]"
            diagnosis.for_absent = Rejection(filters.narrowed_by[0], (text,), is_final=True)
            diagnosis.plugins.update(filters.narrowed_by)
        start = self._start % len(nodes) if nodes else 0
        enough, fitting = self._enough(len(nodes)), []
        check = self._check_of(pod, filters)
        for node in (*nodes[start:], *nodes[:start]):
            if (rejection := check(node)) is not None:
                diagnosis.reject(node.name, rejection)
            else:
                fitting.append(node)
                if len(fitting) == enough:
                    break
        self._start = (self._start + len(fitting) + len(diagnosis.nodes)) % len(self._handle.cache.nodes)
        return fitting

    def _check_of(self, pod: PodInfo, filters: PodFilters) -> NodeFilter:
        """Return the cheapest equivalent node check."""
        if self._handle.nominator:
            return lambda node: check_with_nominated(pod, node, filters, self._framework)
        return filters.checks[0] if len(filters.checks) == 1 else filters.check

    def _enough(self, nodes: int) -> int:
        """Return the number of feasible nodes after which the search stops."""
        percentage = self._percentage or max(50 - nodes // 125, _LEAST_PERCENT)
        return nodes if nodes < _ENOUGH else max(nodes * percentage // 100, _ENOUGH)


def check_with_nominated(pod: PodInfo, node: NodeInfo, filters: PodFilters, framework: Framework) -> Rejection | None:
    """Return the first rejection, counting nominated pods of equal or higher priority as present on the node.

    The node must also pass without the nominated pods: nominated pods may never arrive, and affinity to absent pods
    must not count.
    """
    coming = [
        nominated
        for nominated in framework.handle.nominator.pods_for(node.name)
        if nominated.priority >= pod.priority and nominated.uid != pod.uid and nominated.uid not in node.pods
    ]
    if coming:
        with_them, crowded = filters.copy(), node.copy()
        for each in coming:
            with_them.add_pod(each, crowded)
        if (rejection := with_them.check(crowded)) is not None:
            return rejection
    return filters.check(node)

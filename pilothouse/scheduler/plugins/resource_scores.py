"""Resource scores of a node: least allocated, most allocated, balanced allocation."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cache.requests import CPU, MEMORY, Amounts
from pilothouse.scheduler.plugins.interface import MAX_SCORE

_COMPARED = (CPU, MEMORY)


def least_allocated(pod: PodInfo, node: NodeInfo) -> int:
    """Return the free share of the node with the pod placed."""
    return _mean(pod, node, lambda requested, capacity: capacity - requested)


def most_allocated(pod: PodInfo, node: NodeInfo) -> int:
    """Return the used share of the node with the pod placed."""
    return _mean(pod, node, lambda requested, capacity: requested)


def balanced_allocation(pod: PodInfo, node: NodeInfo) -> int:
    """Return 75 if the pod does not change the balance of resources, more if the balance improves, else less."""
    after = {name: node.requested.get(name, 0) + pod.requests.get(name, 0) for name in _COMPARED}
    gained = _evenness(after, node.allocatable) - _evenness(node.requested, node.allocatable)
    return MAX_SCORE // 2 + (MAX_SCORE // 2 + gained) // 2


def _mean(pod: PodInfo, node: NodeInfo, share: Callable[[int, int], int]) -> int:
    total = resources = 0
    for name in _COMPARED:
        capacity = node.allocatable.get(name, 0)
        if capacity:
            requested = node.counted[name] + pod.counted_requests.get(name, 0)
            total += share(requested, capacity) * MAX_SCORE // capacity if requested <= capacity else 0
            resources += 1
    return total // resources if resources else 0


def _evenness(requested: Amounts, capacity: Amounts) -> int:
    shares = [min(requested.get(name, 0) / capacity[name], 1.0) for name in _COMPARED if capacity.get(name)]
    deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    return int((1 - deviation) * MAX_SCORE)

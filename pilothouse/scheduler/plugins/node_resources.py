"""NodeResourcesFit and NodeResourcesBalancedAllocation: free resources, the balance of their use, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import CPU, MEMORY, Amounts, PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import MAX_SCORE, Plugin, PreFiltered

_FITS, _UNKNOWN = Rejection("", ()), -1

_COMPARED = (CPU, MEMORY)


class NodeResourcesFit(Plugin):
    name = "NodeResourcesFit"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.ASSIGNED_POD, Action.DELETE | Action.SCALED_DOWN),
            EventHint(Subject.PENDING_POD, Action.SCALED_DOWN),
            EventHint(Subject.NODE, Action.ADD | Action.ALLOCATABLE, _fits_now),
        )

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        key = f"fit {pod.requests_key}"

        def check(node: NodeInfo) -> Rejection | None:
            rejection: Rejection | None = node.memo.get(key)
            if rejection is None:
                rejection = self._check(pod, node) or _FITS
                node.remember(key, rejection)
            return None if rejection is _FITS else rejection

        return check

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        return _scores("least", least_allocated, pod, nodes)

    def _check(self, pod: PodInfo, node: NodeInfo) -> Rejection | None:
        lacking = [*_lacking(pod, node)]
        if not lacking and len(node.pods) < node.allowed_pods:
            return None
        too_many = ("Too many pods",) if len(node.pods) >= node.allowed_pods else ()
        final = any(pod.requests[name] > node.allocatable.get(name, 0) for name in lacking)
        return self.reject(*too_many, *(f"Insufficient {name}" for name in lacking), final=final)


class NodeResourcesBalancedAllocation(Plugin):
    name = "NodeResourcesBalancedAllocation"

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        """Skip pods without requests; equal scores would send all of them to one node."""
        if not pod.requests.get("cpu") and not pod.requests.get("memory"):
            return None
        return _scores("balanced", balanced_allocation, pod, nodes)


def _scores(
    name: str, compute: Callable[[PodInfo, NodeInfo], int], pod: PodInfo, nodes: Sequence[NodeInfo]
) -> list[int]:
    key = f"{name} {pod.requests_key}"
    scores: list[int] = [node.memo.get(key, _UNKNOWN) for node in nodes]
    if _UNKNOWN in scores:
        for position, node in enumerate(nodes):
            if scores[position] == _UNKNOWN:
                scores[position] = compute(pod, node)
                node.remember(key, scores[position])
    return scores


def _lacking(pod: PodInfo, node: NodeInfo) -> Iterator[str]:
    """Yield the resources that the node lacks. A request of 0 always fits."""
    for name, amount in pod.requests.items():
        if amount and amount > node.allocatable.get(name, 0) - node.requested.get(name, 0):
            yield name


def _fits_now(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    """Return whether the node gained resources and would fit the pod if empty."""
    if new is None or not _would_fit_alone(pod, after := _info(new)):
        return False
    if old is None:
        return True
    before = _info(old)
    more = any(
        amount and after.allocatable.get(name, 0) > before.allocatable.get(name, 0)
        for name, amount in pod.requests.items()
    )
    return more or after.allowed_pods > before.allowed_pods


def _would_fit_alone(pod: PodInfo, node: NodeInfo) -> bool:
    return node.allowed_pods > 0 and next(_lacking(pod, node), None) is None


def _info(node: Json) -> NodeInfo:
    info = NodeInfo("")
    info.set_node(node)
    return info


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

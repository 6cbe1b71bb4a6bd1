"""Victim selection: the fewest and least important pods of a node that must go, with respect to disruption budgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.selectors.labels import NOTHING, Selector, from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.machinery.times import parse_time, system_clock
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cycle import check_with_nominated
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.framework import Framework, PodFilters
from pilothouse.scheduler.plugins.default_preemption import DefaultPreemption

_LIFTED = 1 << 31
"""Offset that makes priorities positive; otherwise many pods of negative priority would cost less than few."""


@dataclass(frozen=True, slots=True)
class Victims:
    node_name: str
    pods: tuple[PodInfo, ...]
    """Most important first; never empty."""
    broken_budgets: int
    """Number of victims whose eviction violates a disruption budget."""

    @property
    def cost(self) -> tuple[int, int, int, int, float]:
        """Sort key of candidates, by upstream's criteria in order; the least cost wins."""
        greatest = self.pods[0].priority
        earliest = min(start_time(pod) for pod in self.pods if pod.priority == greatest)
        return (
            self.broken_budgets,
            greatest,
            sum(pod.priority + _LIFTED for pod in self.pods),
            len(self.pods),
            -earliest,
        )


def find_victims(
    pod: PodInfo, node: NodeInfo, filters: PodFilters, framework: Framework, budgets: Sequence[Json]
) -> Victims | Rejection:
    """Return the victims whose eviction makes the pod fit, or the rejection that evictions cannot revoke."""
    node, filters = node.copy(), filters.copy()
    candidates = sorted(
        (candidate for candidate in node.pods.values() if candidate.priority < pod.priority), key=importance
    )
    if not candidates:
        return Rejection(DefaultPreemption.name, ("No preemption victims found for incoming pod",), is_final=True)
    for candidate in candidates:
        filters.remove_pod(candidate, node)
    if (rejection := check_with_nominated(pod, node, filters, framework)) is not None:
        return rejection
    protected, free = split_by_budgets(candidates, budgets)
    broken = _not_reprieved(pod, protected, node, filters, framework)
    victims = [*broken, *_not_reprieved(pod, free, node, filters, framework)]
    return Victims(node.name, tuple(sorted(victims, key=importance)), len(broken))


def importance(pod: PodInfo) -> tuple[int, float]:
    """Sort key: higher priority first, then longer running first."""
    return -pod.priority, start_time(pod)


def start_time(pod: PodInfo) -> float:
    """Return the pod's start time; now for pods that have not started."""
    moment = parse_time(text) if (text := pod.status.get("startTime")) else system_clock()
    return moment.timestamp() if moment is not None else 0.0


def _not_reprieved(
    pod: PodInfo, candidates: Iterable[PodInfo], node: NodeInfo, filters: PodFilters, framework: Framework
) -> list[PodInfo]:
    """Re-add every candidate that leaves room for the pod, and return the remaining victims."""
    victims = []
    for candidate in candidates:
        filters.add_pod(candidate, node)
        if check_with_nominated(pod, node, filters, framework) is not None:
            filters.remove_pod(candidate, node)
            victims.append(candidate)
    return victims


def split_by_budgets(pods: Iterable[PodInfo], budgets: Sequence[Json]) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split pods into (violating, non-violating), counting evictions in order."""
    selectors = [_selector(budget) for budget in budgets]
    remaining = [(budget.get("status") or {}).get("disruptionsAllowed") or 0 for budget in budgets]
    breaking: list[PodInfo] = []
    allowed: list[PodInfo] = []
    for pod in pods:
        breaks = False
        for position, budget in enumerate(budgets):
            if namespace_of(budget) == pod.namespace and _counts(budget, selectors[position], pod):
                remaining[position] -= 1
                breaks = breaks or remaining[position] < 0
        (breaking if breaks else allowed).append(pod)
    return breaking, allowed


def _counts(budget: Json, selector: Selector, pod: PodInfo) -> bool:
    """Return whether the pod counts against the budget; disruptions already granted by the API server do not count
    again."""
    paid = (budget.get("status") or {}).get("disruptedPods") or {}
    return bool(pod.labels) and not selector.empty and selector.matches(pod.labels) and pod.name not in paid


def _selector(budget: Json) -> Selector:
    try:
        return from_label_selector((budget.get("spec") or {}).get("selector"))
    except InvalidSelector:
        return NOTHING

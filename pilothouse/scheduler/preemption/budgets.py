"""Disruption budgets of preemption victims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.selectors.labels import NOTHING, Selector, from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.scheduler.cache.pod_info import PodInfo


def split_by_budgets(pods: Iterable[PodInfo], budgets: Sequence[Json]) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split pods into (violating, non-violating), counting evictions in order."""
    selectors = [_selector(budget) for budget in budgets]
    left = [(budget.get("status") or {}).get("disruptionsAllowed") or 0 for budget in budgets]
    breaking: list[PodInfo] = []
    allowed: list[PodInfo] = []
    for pod in pods:
        breaks = False
        for position, budget in enumerate(budgets):
            if namespace_of(budget) == pod.namespace and _counts(budget, selectors[position], pod):
                left[position] -= 1
                breaks = breaks or left[position] < 0
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

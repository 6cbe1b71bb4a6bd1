"""Which pods can not be deleted without breaking a disruption budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.selectors.errors import InvalidSelector
from pilothouse.machinery.selectors.label_selector import from_label_selector
from pilothouse.machinery.selectors.labels import NOTHING, Selector
from pilothouse.scheduler.cache.pod_info import PodInfo


def split_by_budgets(pods: Iterable[PodInfo], budgets: Sequence[Json]) -> tuple[list[PodInfo], list[PodInfo]]:
    """Return those whose deletion, after that of those before them, breaks a budget, and the others, in their order."""
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
    """One whose disruption the API server has let through is paid for already."""
    paid = (budget.get("status") or {}).get("disruptedPods") or {}
    return bool(pod.labels) and not selector.empty and selector.matches(pod.labels) and pod.name not in paid


def _selector(budget: Json) -> Selector:
    try:
        return from_label_selector((budget.get("spec") or {}).get("selector"))
    except InvalidSelector:
        return NOTHING

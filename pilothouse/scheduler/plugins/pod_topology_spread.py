"""PodTopologySpread: spreads the pods of a group evenly over topology domains.

A pod may enter a domain if the domain then has at most `maxSkew` pods more than the emptiest domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import CountingFilter, Plugin, PreFiltered
from pilothouse.scheduler.plugins.spread_constraints import (
    HARD,
    SOFT,
    SpreadConstraint,
    default_constraints,
    has_all_labels,
    own_constraints,
    required_affinity,
)
from pilothouse.scheduler.plugins.spread_scores import scores
from pilothouse.scheduler.plugins.workload_selectors import WorkloadSelectors

_REASON = "node(s) didn't match pod topology spread constraints"


class PodTopologySpread(Plugin):
    name = "PodTopologySpread"

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self.events = (
            EventHint(Subject.ASSIGNED_POD, Action.ADD | Action.LABELS | Action.DELETE, _is_counted),
            EventHint(Subject.PENDING_POD, Action.LABELS),
            EventHint(Subject.NODE, Action.ADD | Action.DELETE | Action.LABELS | Action.TAINTS, _may_be_a_place),
        )
        self._selectors = WorkloadSelectors(handle.listers)
        self.too_many = self.reject(_REASON)
        self.no_label = self.reject(f"{_REASON} (missing required label)", final=True)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not pod.spec.get("topologySpreadConstraints"):
            return None
        try:
            constraints = own_constraints(pod, HARD)
        except InvalidSelector as error:
            return self.reject(f"get constraints from pod: {error}", final=True)
        return _SpreadFilter(self, pod, constraints) if constraints else None

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        if pod.spec.get("topologySpreadConstraints"):
            return scores(pod, nodes, own_constraints(pod, SOFT), self.handle, all_labels_required=True)
        constraints = default_constraints(pod, self._selectors)
        return scores(pod, nodes, constraints, self.handle, all_labels_required=False)


class _SpreadFilter(CountingFilter):
    """Pod counts by domain, for each constraint."""

    def __init__(self, plugin: PodTopologySpread, pod: PodInfo, constraints: Sequence[SpreadConstraint]) -> None:
        self._plugin, self._pod, self._constraints = plugin, pod, constraints
        self._required = required_affinity(pod)
        self._own = [int(each.selector.matches(pod.labels)) for each in constraints]
        self._counts = self._count_all() if self._all_nodes_count() else self._count_each()
        self._find_emptiest()

    def __call__(self, node: NodeInfo, /) -> Rejection | None:
        for position, constraint in enumerate(self._constraints):
            place = node.labels.get(constraint.topology_key)
            if place is None:
                return self._plugin.no_label
            there = self._counts[position].get(place, 0)
            if there + self._own[position] - self._emptiest[position] > constraint.max_skew:
                return self._plugin.too_many
        return None

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__
        other._counts = [dict(counts) for counts in self._counts]
        return other

    def count(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        if pod.namespace != self._pod.namespace or not has_all_labels(node, self._constraints):
            return
        for position, constraint in enumerate(self._constraints):
            if constraint.selector.matches(pod.labels) and constraint.includes(node, self._pod, self._required):
                place, counts = node.labels[constraint.topology_key], self._counts[position]
                counts[place] = counts.get(place, 0) + sign
        self._find_emptiest()

    def _all_nodes_count(self) -> bool:
        cache = self._plugin.handle.cache
        return all(
            each.includes_all(cache, self._required)
            and sum(cache.places(each.topology_key).values()) == len(cache.nodes)
            for each in self._constraints
        )

    def _count_all(self) -> list[dict[str, int]]:
        """Return the pod counts of all domains, including empty domains."""
        cache = self._plugin.handle.cache
        return [
            dict.fromkeys(cache.places(each.topology_key), 0) | each.tally(cache).places.get(each.topology_key, {})
            for each in self._constraints
        ]

    def _count_each(self) -> list[dict[str, int]]:
        """Return the pod counts without nodes that lack a label or that a constraint excludes."""
        cache, all_counts = self._plugin.handle.cache, []
        nodes = [node for node in cache.nodes if has_all_labels(node, self._constraints)]
        for constraint in self._constraints:
            key, tally, counts = constraint.topology_key, constraint.tally(cache), dict[str, int]()
            for node in nodes:
                if constraint.includes(node, self._pod, self._required):
                    counts[node.labels[key]] = counts.get(node.labels[key], 0) + tally.on(node).get(key, 0)
            all_counts.append(counts)
        return all_counts

    def _find_emptiest(self) -> None:
        """Find the minimum count per constraint; 0 while there are fewer domains than `minDomains`."""
        self._emptiest = [
            0 if len(counts) < constraint.min_domains else min(counts.values(), default=0)
            for constraint, counts in zip(self._constraints, self._counts, strict=True)
        ]


def _is_counted(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    """Return whether a constraint of the pod counts the changed pod."""
    constraints = own_constraints(pod, HARD)
    for other in (old, new):
        if other is not None and other["metadata"].get("namespace") == pod.namespace:
            labels = other["metadata"].get("labels") or {}
            if any(constraint.selector.matches(labels) for constraint in constraints):
                return True
    return False


def _may_be_a_place(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    keys = {constraint.topology_key for constraint in own_constraints(pod, HARD)}
    return any(keys <= (node["metadata"].get("labels") or {}).keys() for node in (old, new) if node is not None)

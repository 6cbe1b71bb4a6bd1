"""PodTopologySpread: spreads the pods of a group evenly over topology domains. Fewer pods in a domain score higher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log
from typing import Self

from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.scheduler.cache.cache import HOSTNAME
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cluster_events import Action, EventHint, Subject
from pilothouse.scheduler.diagnosis import Rejection
from pilothouse.scheduler.plugins import spread_constraints
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import MAX_SCORE, CountingFilter, Plugin, PreFiltered

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
        self._selectors = spread_constraints.WorkloadSelectors(handle.listers)
        self.too_many = self.reject(_REASON)
        self.no_label = self.reject(f"{_REASON} (missing required label)", final=True)

    def pre_filter(self, pod: PodInfo) -> PreFiltered:
        if not pod.spec.get("topologySpreadConstraints"):
            return None
        try:
            constraints = spread_constraints.own_constraints(pod, spread_constraints.HARD)
        except InvalidSelector as error:
            return self.reject(f"get constraints from pod: {error}", final=True)
        return _SpreadFilter(self, pod, constraints) if constraints else None

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        if pod.spec.get("topologySpreadConstraints"):
            return scores(
                pod,
                nodes,
                spread_constraints.own_constraints(pod, spread_constraints.SOFT),
                self.handle,
                all_labels_required=True,
            )
        constraints = spread_constraints.default_constraints(pod, self._selectors)
        return scores(pod, nodes, constraints, self.handle, all_labels_required=False)


class _SpreadFilter(CountingFilter):
    """Pod counts by domain, for each constraint."""

    def __init__(
        self, plugin: PodTopologySpread, pod: PodInfo, constraints: Sequence[spread_constraints.SpreadConstraint]
    ) -> None:
        self._plugin, self._pod, self._constraints = plugin, pod, constraints
        self._required = spread_constraints.required_affinity(pod)
        self._own = [int(constraint.selector.matches(pod.labels)) for constraint in constraints]
        self._counts = self._count_all() if self._all_nodes_count() else self._count_each()
        self._find_emptiest()

    def __call__(self, node: NodeInfo, /) -> Rejection | None:
        for position, constraint in enumerate(self._constraints):
            domain = node.labels.get(constraint.topology_key)
            if domain is None:
                return self._plugin.no_label
            count = self._counts[position].get(domain, 0)
            if count + self._own[position] - self._emptiest[position] > constraint.max_skew:
                return self._plugin.too_many
        return None

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__
        other._counts = [dict(counts) for counts in self._counts]
        return other

    def count(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        if pod.namespace != self._pod.namespace or not spread_constraints.has_all_labels(node, self._constraints):
            return
        for position, constraint in enumerate(self._constraints):
            if constraint.selector.matches(pod.labels) and constraint.includes(node, self._pod, self._required):
                domain, counts = node.labels[constraint.topology_key], self._counts[position]
                counts[domain] = counts.get(domain, 0) + sign
        self._find_emptiest()

    def _all_nodes_count(self) -> bool:
        cache = self._plugin.handle.cache
        return all(
            constraint.includes_all(cache, self._required)
            and sum(cache.places(constraint.topology_key).values()) == len(cache.nodes)
            for constraint in self._constraints
        )

    def _count_all(self) -> list[dict[str, int]]:
        """Return the pod counts of all domains, including empty domains."""
        cache = self._plugin.handle.cache
        return [
            dict.fromkeys(cache.places(constraint.topology_key), 0)
            | constraint.tally(cache).places.get(constraint.topology_key, {})
            for constraint in self._constraints
        ]

    def _count_each(self) -> list[dict[str, int]]:
        """Return the pod counts without nodes that lack a label or that a constraint excludes."""
        cache, all_counts = self._plugin.handle.cache, []
        nodes = [node for node in cache.nodes if spread_constraints.has_all_labels(node, self._constraints)]
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
    constraints = spread_constraints.own_constraints(pod, spread_constraints.HARD)
    for other in (old, new):
        if other is not None and other["metadata"].get("namespace") == pod.namespace:
            labels = other["metadata"].get("labels") or {}
            if any(constraint.selector.matches(labels) for constraint in constraints):
                return True
    return False


def _may_be_a_place(pod: PodInfo, old: Json | None, new: Json | None) -> bool:
    keys = {constraint.topology_key for constraint in spread_constraints.own_constraints(pod, spread_constraints.HARD)}
    return any(keys <= (node["metadata"].get("labels") or {}).keys() for node in (old, new) if node is not None)


def scores(
    pod: PodInfo,
    nodes: Sequence[NodeInfo],
    constraints: Sequence[spread_constraints.SpreadConstraint],
    handle: Handle,
    *,
    all_labels_required: bool,
) -> list[int] | None:
    """Return the scores; None without constraints. Nodes without required labels score 0."""
    if not constraints:
        return None
    taking_part = [not all_labels_required or spread_constraints.has_all_labels(node, constraints) for node in nodes]
    chosen = [node for node, takes_part in zip(nodes, taking_part, strict=True) if takes_part]
    sums = [0.0] * len(chosen)
    for constraint in constraints:
        totals = _totals(pod, chosen, constraint, handle, constraints if all_labels_required else ())
        # Topology keys with many domains weigh more; otherwise keys with few domains would dominate.
        number = len(chosen) if constraint.topology_key == HOSTNAME else len(totals)
        weight = log(number + 2)
        key, tolerance = constraint.topology_key, constraint.max_skew - 1
        by_domain = {domain: total * weight + tolerance for domain, total in totals.items()}
        sums = [
            before + by_domain.get(node.labels[key], tolerance) if key in node.labels else before
            for before, node in zip(sums, chosen, strict=True)
        ]
    rounded = iter(_normalized([floor(total + 0.5) for total in sums]))
    return [next(rounded) if takes_part else 0 for takes_part in taking_part]


def _totals(
    pod: PodInfo,
    nodes: Sequence[NodeInfo],
    constraint: spread_constraints.SpreadConstraint,
    handle: Handle,
    all_of: Sequence[spread_constraints.SpreadConstraint],
) -> Mapping[str, int]:
    """Return the pod counts of the domains of `nodes`.

    Only nodes count that the constraint includes and that have the labels of all constraints; for the hostname key,
    every node counts.
    """
    key, required, cache = constraint.topology_key, spread_constraints.required_affinity(pod), handle.cache
    tally = constraint.tally(cache)
    counts = tally.places.get(key, {})
    if key == HOSTNAME:
        return counts
    totals = dict.fromkeys([node.labels.get(key, "") for node in nodes], 0)
    if constraint.includes_all(cache, required) and len(all_of) <= 1:
        return {domain: counts.get(domain, 0) for domain in totals}
    for node in cache.nodes:
        place = node.labels.get(key, "")
        if (
            place in totals
            and spread_constraints.has_all_labels(node, all_of)
            and constraint.includes(node, pod, required)
        ):
            totals[place] += tally.on(node).get(key, 0)
    return totals


def _normalized(sums: Sequence[int]) -> list[int]:
    least, greatest = min(sums, default=0), max(sums, default=0)
    if greatest == 0:
        return [MAX_SCORE] * len(sums)
    return [MAX_SCORE * (greatest + least - total) // greatest for total in sums]

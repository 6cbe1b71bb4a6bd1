"""Scores of topology spread: fewer pods of the group in a domain score higher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log

from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.node_order import HOSTNAME
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import MAX_SCORE
from pilothouse.scheduler.plugins.spread_constraints import SpreadConstraint, has_all_labels, required_affinity


def scores(
    pod: PodInfo,
    nodes: Sequence[NodeInfo],
    constraints: Sequence[SpreadConstraint],
    handle: Handle,
    *,
    all_labels_required: bool,
) -> list[int] | None:
    """Return the scores; None without constraints. Nodes without required labels score 0."""
    if not constraints:
        return None
    taking_part = [not all_labels_required or has_all_labels(node, constraints) for node in nodes]
    chosen = [node for node, takes_part in zip(nodes, taking_part, strict=True) if takes_part]
    sums = [0.0] * len(chosen)
    for constraint in constraints:
        totals = _totals(pod, chosen, constraint, handle, constraints if all_labels_required else ())
        # Topology keys with many domains weigh more; otherwise keys with few domains would dominate.
        number = len(chosen) if constraint.topology_key == HOSTNAME else len(totals)
        sums = _added(sums, chosen, constraint, totals, log(number + 2))
    rounded = iter(_normalized([floor(each + 0.5) for each in sums]))
    return [next(rounded) if takes_part else 0 for takes_part in taking_part]


def _added(
    sums: Sequence[float],
    nodes: Sequence[NodeInfo],
    constraint: SpreadConstraint,
    totals: Mapping[str, int],
    weight: float,
) -> list[float]:
    """Return the sums plus the constraint's score of each node; nodes without the label gain 0."""
    key, tolerance = constraint.topology_key, constraint.max_skew - 1
    scores = {place: total * weight + tolerance for place, total in totals.items()}
    return [
        before + scores.get(node.labels[key], tolerance) if key in node.labels else before
        for before, node in zip(sums, nodes, strict=True)
    ]


def _totals(
    pod: PodInfo,
    nodes: Sequence[NodeInfo],
    constraint: SpreadConstraint,
    handle: Handle,
    all_of: Sequence[SpreadConstraint],
) -> Mapping[str, int]:
    """Return the pod counts of the domains of `nodes`.

    Only nodes count that the constraint includes and that have the labels of all constraints; for the hostname key,
    every node counts.
    """
    key, required, cache = constraint.topology_key, required_affinity(pod), handle.cache
    tally = constraint.tally(cache)
    known = tally.places.get(key, {})
    if key == HOSTNAME:
        return known
    totals = dict.fromkeys([node.labels.get(key, "") for node in nodes], 0)
    if constraint.includes_all(cache, required) and len(all_of) <= 1:
        return {place: known.get(place, 0) for place in totals}
    for node in cache.nodes:
        place = node.labels.get(key, "")
        if place in totals and has_all_labels(node, all_of) and constraint.includes(node, pod, required):
            totals[place] += tally.on(node).get(key, 0)
    return totals


def _normalized(sums: Sequence[int]) -> list[int]:
    least, greatest = min(sums, default=0), max(sums, default=0)
    if greatest == 0:
        return [MAX_SCORE] * len(sums)
    return [MAX_SCORE * (greatest + least - each) // greatest for each in sums]

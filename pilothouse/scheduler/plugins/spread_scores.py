"""How much a pod would add to an uneven spread: the fewer pods of its group at a place, the better."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Return the scores; None if there are no constraints. Nodes without the labels that are required get 0."""
    if not constraints:
        return None
    taking_part = [not all_labels_required or has_all_labels(node, constraints) for node in nodes]
    chosen = [node for node, takes_part in zip(nodes, taking_part, strict=True) if takes_part]
    sums = [0.0] * len(chosen)
    for constraint in constraints:
        counted = handle.cache.nodes
        if all_labels_required:
            counted = [node for node in counted if has_all_labels(node, constraints)]
        _add_scores(sums, chosen, counted, constraint, pod)
    rounded = iter(_normalized([floor(each + 0.5) for each in sums]))
    return [next(rounded) if takes_part else 0 for takes_part in taking_part]


def _add_scores(
    sums: list[float],
    nodes: Sequence[NodeInfo],
    counted: Sequence[NodeInfo],
    constraint: SpreadConstraint,
    pod: PodInfo,
) -> None:
    """Places of which there are many count for more, so that those of which there are few do not drown them."""
    key, tolerance = constraint.topology_key, constraint.max_skew - 1
    if key == HOSTNAME:
        weight = log(len(nodes) + 2)
        for position, node in enumerate(nodes):
            if key in node.labels:
                sums[position] += constraint.count_on(node) * weight + tolerance
        return
    totals = dict.fromkeys((node.labels.get(key, "") for node in nodes), 0)
    if len(totals) == 1 and "" in totals and not any(key in node.labels for node in nodes):
        return
    weight, required = log(len(totals) + 2), required_affinity(pod)
    for node in counted:
        place = node.labels.get(key, "")
        if place in totals and constraint.includes(node, pod, required):
            totals[place] += constraint.count_on(node)
    for position, node in enumerate(nodes):
        if key in node.labels:
            sums[position] += totals[node.labels[key]] * weight + tolerance


def _normalized(sums: Sequence[int]) -> list[int]:
    least, greatest = min(sums, default=0), max(sums, default=0)
    if greatest == 0:
        return [MAX_SCORE] * len(sums)
    return [MAX_SCORE * (greatest + least - each) // greatest for each in sums]

"""Scores of inter-pod affinity: preferences of the pod for existing pods, and of existing pods for the pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.cache.tallies import Tally
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import MAX_SCORE
from pilothouse.scheduler.plugins.matching_pods import count_matching_all, matches
from pilothouse.scheduler.plugins.places import Places

HARD_POD_AFFINITY_WEIGHT = 1
"""Weight of an existing pod's required affinity to the new pod."""


def scores(pod: PodInfo, nodes: Sequence[NodeInfo], handle: Handle) -> list[int] | None:
    """Return scores from 0 to 100, one per node; None without any preference."""
    tallies = [_liked_by_pod(pod, handle)] if pod.affinity.has_preferences else []
    if handle.cache.with_affinity:
        tallies.append(_liking_pod(pod, handle))
    liking = Places(*tallies)
    if not liking:
        return None
    sums = liking.sums_at(nodes)
    least, span = min(sums), max(sums) - min(sums)
    return [int(MAX_SCORE * ((each - least) / span)) if span else 0 for each in sums]


def _liked_by_pod(pod: PodInfo, handle: Handle) -> Tally:
    signed = [(1, term) for term in pod.affinity.preferred] + [(-1, term) for term in pod.affinity.preferred_anti]

    def contribution(node: NodeInfo) -> dict[str, int]:
        sums: dict[str, int] = {}
        for sign, term in signed:
            if number := count_matching_all((term,), node, handle):
                sums[term.topology_key] = sums.get(term.topology_key, 0) + sign * term.weight * number
        return sums

    key = "; ".join(f"{sign * term.weight} for {term.key} at {term.topology_key}" for sign, term in signed)
    return handle.cache.tally(key, contribution)


def _liking_pod(pod: PodInfo, handle: Handle) -> Tally:
    def contribution(node: NodeInfo) -> dict[str, int]:
        sums: dict[str, int] = {}
        for other in node.with_affinity.values():
            for topology_key, weight in _preferences_of(other, pod, handle):
                sums[topology_key] = sums.get(topology_key, 0) + weight
        return sums

    return handle.cache.tally(f"liking {pod.labels_key}", contribution, handle.cache.with_affinity.values())


def _preferences_of(other: PodInfo, pod: PodInfo, handle: Handle) -> Iterator[tuple[str, int]]:
    affinity = other.affinity
    for term in affinity.required:
        if matches(term, pod, handle):
            yield term.topology_key, HARD_POD_AFFINITY_WEIGHT
    for sign, terms in ((1, affinity.preferred), (-1, affinity.preferred_anti)):
        for term in terms:
            if matches(term, pod, handle):
                yield term.topology_key, sign * term.weight

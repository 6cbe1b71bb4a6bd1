"""How much a pod prefers the pods of a place, and they it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.plugins.handle import Handle
from pilothouse.scheduler.plugins.interface import MAX_SCORE
from pilothouse.scheduler.plugins.matching_pods import count_matching_all, matches
from pilothouse.scheduler.plugins.places import Places

HARD_POD_AFFINITY_WEIGHT = 1
"""How much it counts that a pod there requires to be near such pods."""


def scores(pod: PodInfo, nodes: Sequence[NodeInfo], handle: Handle) -> list[int] | None:
    """Return the scores of the nodes, the least 0 and the greatest 100; None if nobody prefers anything."""
    liking = Places()
    if pod.affinity.has_preferences:
        for node in handle.cache.nodes:
            _add_preferences_of_pod(liking, pod, node, handle)
    for node in handle.cache.with_affinity.values():
        for topology_key, weight in _preferences_on_node(pod, node, handle):
            liking.add(topology_key, node, weight)
    if not liking:
        return None
    sums = [liking.sum_at(node) for node in nodes]
    least, span = min(sums), max(sums) - min(sums)
    return [int(MAX_SCORE * ((each - least) / span)) if span else 0 for each in sums]


def _add_preferences_of_pod(liking: Places, pod: PodInfo, node: NodeInfo, handle: Handle) -> None:
    for sign, terms in ((1, pod.affinity.preferred), (-1, pod.affinity.preferred_anti)):
        for term in terms:
            if number := count_matching_all((term,), node, handle):
                liking.add(term.topology_key, node, sign * term.weight * number)


def _preferences_on_node(pod: PodInfo, node: NodeInfo, handle: Handle) -> list[tuple[str, int]]:
    key = f"preferences {pod.labels_key}"
    found: list[tuple[str, int]] | None = node.memo.get(key)
    if found is None:
        found = [each for other in node.with_affinity.values() for each in _preferences_of(other, pod, handle)]
        node.remember(key, found)
    return found


def _preferences_of(other: PodInfo, pod: PodInfo, handle: Handle) -> Iterator[tuple[str, int]]:
    affinity = other.affinity
    for term in affinity.required:
        if matches(term, pod, handle):
            yield term.topology_key, HARD_POD_AFFINITY_WEIGHT
    for sign, terms in ((1, affinity.preferred), (-1, affinity.preferred_anti)):
        for term in terms:
            if matches(term, pod, handle):
                yield term.topology_key, sign * term.weight

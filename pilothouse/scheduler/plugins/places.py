"""Counts of matching pods, by node and by topology domain (the value of a node label such as zone or hostname).

Nodes memoize their counts until their pods change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.machinery.selectors.labels import Selector
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import AffinityTerm, PodInfo
from pilothouse.scheduler.cache.tallies import Tally
from pilothouse.scheduler.plugins.handle import Handle


class Places:
    _counts: dict[str, dict[str, int]]  # topology key → value → count, never 0

    def __init__(self, *tallies: Tally) -> None:
        """Sum the tallies. The tallies stay unchanged: `add` works on copies."""
        self._counts = dict(tallies[0].places) if tallies else {}
        for tally in tallies[1:]:
            for topology_key, values in tally.places.items():
                self._counts[topology_key] = _sum(self._counts.get(topology_key), values)

    def __bool__(self) -> bool:
        return any(self._counts.values())

    def add(self, topology_key: str, node: NodeInfo, number: int) -> None:
        """Add to the node's domain; a no-op for nodes without the label."""
        value = node.labels.get(topology_key)
        if value is None:
            return
        values = self._counts.setdefault(topology_key, {})
        values[value] = values.get(value, 0) + number
        if not values[value]:
            del values[value]

    def count_at(self, topology_key: str, node: NodeInfo) -> int:
        value = node.labels.get(topology_key)
        return self._counts.get(topology_key, {}).get(value, 0) if value is not None else 0

    def any_at(self, node: NodeInfo) -> bool:
        for topology_key, values in self._counts.items():
            if values.get(node.labels.get(topology_key, ""), 0) > 0:
                return True
        return False

    def sums_at(self, nodes: Iterable[NodeInfo]) -> list[int]:
        """Return for each node the sum over all its domains."""
        nodes = list(nodes)
        sums = [0] * len(nodes)
        for key, values in self._counts.items():
            sums = [before + values.get(node.labels.get(key, ""), 0) for before, node in zip(sums, nodes, strict=True)]
        return sums

    def copy(self) -> Places:
        other = Places()
        other._counts = {key: dict(values) for key, values in self._counts.items()}
        return other


def _sum(one: dict[str, int] | None, other: dict[str, int]) -> dict[str, int]:
    if not one:
        return other
    return {value: one.get(value, 0) + other.get(value, 0) for value in one.keys() | other.keys()}


def matches(term: AffinityTerm, pod: PodInfo, handle: Handle) -> bool:
    return term.matches(pod.namespace, pod.labels, handle.namespace_labels(pod.namespace))


def matches_all(terms: Sequence[AffinityTerm], pod: PodInfo, handle: Handle) -> bool:
    """Return whether the pod matches all terms; False without terms."""
    return bool(terms) and all(matches(term, pod, handle) for term in terms)


def count_matching_all(terms: Sequence[AffinityTerm], node: NodeInfo, handle: Handle) -> int:
    """Return the number of pods on the node that match all terms."""
    return sum(1 for pod in node.pods.values() if matches_all(terms, pod, handle)) if terms else 0


def count_selected(namespace: str, selector: Selector, node: NodeInfo) -> int:
    """Return the number of selected, non-terminating pods of the namespace.

    An empty selector counts 0, as upstream.
    """
    if selector.empty:
        return 0
    return sum(
        1
        for pod in node.pods.values()
        if pod.namespace == namespace and not pod.is_terminating and selector.matches(pod.labels)
    )

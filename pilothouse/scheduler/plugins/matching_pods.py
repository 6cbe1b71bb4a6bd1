"""How many pods on a node are meant by a term or a selector. A node keeps the answer until a pod comes or goes."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.machinery.selectors.labels import Selector
from pilothouse.scheduler.cache.affinity_terms import AffinityTerm
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.plugins.handle import Handle


def matches(term: AffinityTerm, pod: PodInfo, handle: Handle) -> bool:
    return term.matches(pod.namespace, pod.labels, handle.namespace_labels(pod.namespace))


def matches_all(terms: Sequence[AffinityTerm], pod: PodInfo, handle: Handle) -> bool:
    """No terms match nothing."""
    return bool(terms) and all(matches(term, pod, handle) for term in terms)


def count_matching_all(terms: Sequence[AffinityTerm], node: NodeInfo, handle: Handle) -> int:
    """Return how many pods on the node match every one of the terms."""
    return sum(1 for pod in node.pods.values() if matches_all(terms, pod, handle)) if terms else 0


def count_selected(namespace: str, selector: Selector, node: NodeInfo) -> int:
    """Return how many pods of the namespace the selector selects, without those that are going.

    A selector that selects everything counts nothing, as upstream has it.
    """
    if selector.empty:
        return 0
    return sum(
        1
        for pod in node.pods.values()
        if pod.namespace == namespace and not pod.is_terminating and selector.matches(pod.labels)
    )

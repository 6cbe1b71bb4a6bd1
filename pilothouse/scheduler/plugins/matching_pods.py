"""Counts of pods on a node that match a term or selector. Nodes memoize the counts until their pods change."""

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

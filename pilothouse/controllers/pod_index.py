"""Shared informer indexes of pods, by node and by claim."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.client.cache.indexer import IndexFunc
from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.kinds.pods import node_name
from pilothouse.kinds.references import claim_names
from pilothouse.machinery.objects import Json, namespace_of

PODS_BY_NODE = "spec.nodeName"
PODS_BY_CLAIM = "pod-pvc-index"
"""Index by namespace/name of the claim."""


def index_pods_by_node(pods: SharedIndexInformer) -> None:
    """Add the index PODS_BY_NODE to the informer. Idempotent."""
    _index(pods, PODS_BY_NODE, _node_name)


def index_pods_by_claim(pods: SharedIndexInformer) -> None:
    """Add the index PODS_BY_CLAIM to the informer. Idempotent."""
    _index(pods, PODS_BY_CLAIM, claim_keys)


def claim_keys(pod: Json) -> list[str]:
    return [f"{namespace_of(pod)}/{name}" for name in claim_names(pod)]


def _index(pods: SharedIndexInformer, name: str, values_of: IndexFunc) -> None:
    if name not in pods.indexer.indexers:
        pods.add_indexers({name: values_of})


def _node_name(pod: Json) -> Iterable[str]:
    name = node_name(pod)
    return (name,) if name else ()

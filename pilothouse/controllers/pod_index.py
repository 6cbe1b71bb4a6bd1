"""Pods by the node that they are on: an index that several controllers share."""

from __future__ import annotations

from pilothouse.client.cache.shared_informer import SharedIndexInformer
from pilothouse.machinery.objects import Json

PODS_BY_NODE = "spec.nodeName"


def index_pods_by_node(pods: SharedIndexInformer) -> None:
    """See that the informer has the index PODS_BY_NODE. Whoever comes first makes it."""
    if PODS_BY_NODE not in pods.indexer.indexers:
        pods.add_indexers({PODS_BY_NODE: _node_name})


def _node_name(pod: Json) -> tuple[str, ...]:
    name = (pod.get("spec") or {}).get("nodeName")
    return (name,) if name else ()

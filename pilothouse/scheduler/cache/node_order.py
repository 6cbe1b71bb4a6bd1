"""Search order of nodes: round-robin over zones, so a partial search covers many zones.

zone a: a1 a2 a3, zone b: b1   → a1 b1 a2 a3
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest

from pilothouse.scheduler.cache.node_info import NodeInfo

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


def zone_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return (region, zone); empty strings if a node has no such label."""
    return labels.get(_OLD_REGION) or labels.get(REGION, ""), labels.get(_OLD_ZONE) or labels.get(ZONE, "")


def in_turns_of_zones(nodes: Iterable[NodeInfo]) -> list[NodeInfo]:
    zones: dict[tuple[str, str], list[NodeInfo]] = {}
    for node in nodes:
        zones.setdefault(zone_of(node.labels), []).append(node)
    return [node for node in chain.from_iterable(zip_longest(*zones.values())) if node is not None]

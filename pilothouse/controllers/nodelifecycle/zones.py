"""Zones of nodes: zone health determines the eviction rate."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from pilothouse.controllers.nodelifecycle.config import NodeLifecycleConfig
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of


class ZoneState(Enum):
    INITIAL = "Initial"
    NORMAL = "Normal"
    FULL_DISRUPTION = "FullDisruption"
    PARTIAL_DISRUPTION = "PartialDisruption"


@dataclass(frozen=True, slots=True)
class ZoneHealth:
    size: int
    unhealthy: int
    state: ZoneState


def zone_key(node: Json) -> str:
    """Return the key of the node's zone; empty without region and zone."""
    labels = labels_of(node)
    zone = labels.get("failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", ""))
    region = labels.get("failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", ""))
    return f"{region}:\0:{zone}" if region or zone else ""


def zone_health(ready: Iterable[bool], config: NodeLifecycleConfig) -> ZoneHealth:
    """Return the health of a zone from the readiness of its nodes."""
    nodes = [*ready]
    down = nodes.count(False)
    if down and down == len(nodes):
        state = ZoneState.FULL_DISRUPTION
    elif down > 2 and down / len(nodes) >= config.unhealthy_zone_threshold:
        state = ZoneState.PARTIAL_DISRUPTION
    else:
        state = ZoneState.NORMAL
    return ZoneHealth(len(nodes), down, state)


def eviction_rate(health: ZoneHealth, config: NodeLifecycleConfig) -> float:
    """Return the allowed evictions in nodes per second."""
    if health.state is not ZoneState.PARTIAL_DISRUPTION:
        return config.node_eviction_rate
    return config.secondary_node_eviction_rate if health.size > config.large_cluster_size_threshold else 0.0

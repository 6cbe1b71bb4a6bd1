"""The settings of the controller of nodes' lives that flags give."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLifecycleConfig:
    node_monitor_period: float = 5.0
    """How often the heartbeats of all nodes are looked at."""
    node_startup_grace_period: float = 60.0
    """How long a new node may be silent before it is said to be unhealthy."""
    node_monitor_grace_period: float = 50.0
    """How long a node that was heard before may be silent."""
    node_eviction_rate: float = 0.1
    """How many nodes a second are tainted so that their pods go, in a zone that is healthy."""
    secondary_node_eviction_rate: float = 0.01
    """The same in a large zone that is unhealthy; in a small one, it is none."""
    large_cluster_size_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55
    """The share of nodes that are not ready at which a zone is unhealthy, if they are at least three."""

"""Settings of the node lifecycle controller."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLifecycleConfig:
    node_monitor_period: float = 5.0
    """Seconds between health checks of all nodes."""
    node_startup_grace_period: float = 60.0
    """Seconds without heartbeat until a new node is unhealthy."""
    node_monitor_grace_period: float = 50.0
    """Seconds without heartbeat until a known node is unhealthy."""
    node_eviction_rate: float = 0.1
    """Nodes tainted NoExecute per second in a healthy zone."""
    secondary_node_eviction_rate: float = 0.01
    """Nodes tainted per second in a large unhealthy zone; 0 in a small one."""
    large_cluster_size_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55
    """Fraction of not-ready nodes, at least three, that makes a zone unhealthy."""

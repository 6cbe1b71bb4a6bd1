"""Settings of the simulation."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationConfig:
    nodes: int = 0
    """Number of nodes created at the start."""
    cpu: str = "32"
    memory: str = "256Gi"
    pods: int = 110
    """Default pod capacity of a node."""
    zones: int = 3
    """Number of zones."""
    cluster_cidr: str = "10.128.0.0/10"
    node_cidr_mask_size: int = 24
    """Prefix length of the pod range of each node."""
    node_address_cidr: str = "172.18.0.0/16"
    """Address range of nodes."""
    delay: float = 0.05
    """Simulated latency in seconds of container start, stop and short-lived work."""
    jitter: float = 0.2
    """Maximum relative jitter of delays."""
    seed: int = 0
    """Seed of the jitter."""
    time_scale: float = 0.05
    """Scale of probe periods and back-offs; 1 = real time."""
    kubelet_port: int = 10250
    """Published kubelet port of every node."""

    renew_interval: float = 10.0
    """Seconds between lease renewals of a node; longer with very many nodes, see `leases.py`."""
    writers: int = 16
    """Number of concurrent pod writes."""

    def scaled(self, seconds: float) -> float:
        return seconds * self.time_scale

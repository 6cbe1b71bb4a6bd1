"""The settings of the simulation."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationConfig:
    nodes: int = 0
    """How many nodes are made when the server starts."""
    cpu: str = "32"
    memory: str = "256Gi"
    pods: int = 110
    """The capacity of a node that does not say otherwise."""
    zones: int = 3
    """Over how many zones the nodes are spread."""
    cluster_cidr: str = "10.128.0.0/10"
    node_cidr_mask_size: int = 24
    """The addresses of pods; each node gets a part of them."""
    node_address_cidr: str = "172.18.0.0/16"
    """The addresses of nodes."""
    delay: float = 0.05
    """Seconds for each thing that takes a moment: creating a container, ending one, the work of one that ends."""
    jitter: float = 0.2
    """By which share a delay is longer at most."""
    seed: int = 0
    """Where the jitter comes from."""
    time_scale: float = 0.05
    """How long the seconds of probes and back-offs are: 1 is as on real nodes."""
    kubelet_port: int = 10250
    """Where the kubelet of every node is said to listen."""

    renew_interval: float = 10.0
    """How often a node renews its lease. Where there are very many nodes, less often: see `leases.py`."""
    writers: int = 16
    """How many pods are written at once."""

    def scaled(self, seconds: float) -> float:
        return seconds * self.time_scale

"""Ranges of cluster IPs and node ports. Separate from the allocators for a light import by the options."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

DEFAULT_CLUSTER_IP_RANGE = "10.0.0.0/24"
DEFAULT_NODE_PORTS = range(30000, 32768)


@dataclass(frozen=True, slots=True)
class ServiceNetwork:
    """The family of the first range is the cluster's default family."""

    cluster_ip_ranges: tuple[str, ...] = (DEFAULT_CLUSTER_IP_RANGE,)
    node_ports: range = DEFAULT_NODE_PORTS

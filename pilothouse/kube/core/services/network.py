"""Where the addresses and ports of services come from. Apart from what hands them out: the options need only this."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

DEFAULT_CLUSTER_IP_RANGE = "10.0.0.0/24"
DEFAULT_NODE_PORTS = range(30000, 32768)


@dataclass(frozen=True, slots=True)
class ServiceNetwork:
    """The first range's family is the default one."""

    cluster_ip_ranges: tuple[str, ...] = (DEFAULT_CLUSTER_IP_RANGE,)
    node_ports: range = DEFAULT_NODE_PORTS

"""The settings of the controller that gives nodes ranges of addresses, which flags give."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIPAMConfig:
    allocate_node_cidrs: bool = False
    cluster_cidrs: tuple[str, ...] = ()
    """The ranges that are divided among the nodes: one, or one of each family."""
    node_cidr_mask_size_ipv4: int = 24
    node_cidr_mask_size_ipv6: int = 64
    service_cidrs: tuple[str, ...] = ()
    """Ranges of services, from which pods get nothing."""

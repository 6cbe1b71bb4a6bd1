"""Settings of node-ipam-controller."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIPAMConfig:
    allocate_node_cidrs: bool = False
    cluster_cidrs: tuple[str, ...] = ()
    """CIDRs divided among the nodes: one, or one per IP family."""
    node_cidr_mask_size_ipv4: int = 24
    node_cidr_mask_size_ipv6: int = 64
    service_cidrs: tuple[str, ...] = ()
    """Service CIDRs, which are excluded from allocation."""

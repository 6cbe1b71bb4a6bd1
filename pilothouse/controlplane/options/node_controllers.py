"""Controllers of nodes: kube-controller-manager's flags for when a silent node is given up, and for ranges of pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import BOOL, DURATION, FLOAT, INT, STRING, flag


@dataclass(frozen=True)
class NodeControllerOptions:
    title: ClassVar[str] = "node controllers"

    node_monitor_period: float = flag(
        "node-monitor-period", DURATION, 5.0, "How often the heartbeats of all nodes are looked at."
    )
    node_startup_grace_period: float = flag(
        "node-startup-grace-period", DURATION, 60.0, "How long a new node may be silent before it is unhealthy."
    )
    node_monitor_grace_period: float = flag(
        "node-monitor-grace-period", DURATION, 50.0, "How long a node that was heard may be silent."
    )
    node_eviction_rate: float = flag(
        "node-eviction-rate", FLOAT, 0.1, "How many nodes a second are emptied of pods in a healthy zone."
    )
    secondary_node_eviction_rate: float = flag(
        "secondary-node-eviction-rate",
        FLOAT,
        0.01,
        "How many nodes a second are emptied of pods in an unhealthy zone that is large; in others none is.",
    )
    large_cluster_size_threshold: int = flag(
        "large-cluster-size-threshold", INT, 50, "From how many nodes on a zone is large."
    )
    unhealthy_zone_threshold: float = flag(
        "unhealthy-zone-threshold", FLOAT, 0.55, "The share of nodes that are not ready at which a zone is unhealthy."
    )

    allocate_node_cidrs: bool = flag(
        "allocate-node-cidrs", BOOL, False, "Give each node a range of addresses for its pods."
    )
    cluster_cidr: str = flag(
        "cluster-cidr", STRING, "", "The addresses of pods, of which each node gets a part; one range for each family."
    )
    node_cidr_mask_size_ipv4: int = flag(
        "node-cidr-mask-size-ipv4", INT, 24, "How many bits the mask of a node's range of IPv4 addresses has."
    )
    node_cidr_mask_size_ipv6: int = flag(
        "node-cidr-mask-size-ipv6", INT, 64, "How many bits the mask of a node's range of IPv6 addresses has."
    )

    def validate(self) -> Iterator[str]:
        if self.node_monitor_period <= 0:
            yield "node-monitor-period must be greater than 0"
        if self.node_monitor_grace_period <= self.node_monitor_period:
            yield "node-monitor-grace-period must be greater than node-monitor-period"
        if self.node_eviction_rate < 0 or self.secondary_node_eviction_rate < 0:
            yield "node-eviction-rate and secondary-node-eviction-rate must not be negative"
        if self.allocate_node_cidrs and not self.cluster_cidr:
            yield "--cluster-cidr must be set with --allocate-node-cidrs"
        if self.cluster_cidr:
            from pilothouse.controllers.nodeipam.cidr_set import cidr_sets
            from pilothouse.controlplane.controller_config import node_ipam_config

            try:
                cidr_sets(node_ipam_config(self))
            except ValueError as error:
                yield f"cluster-cidr: {error}"

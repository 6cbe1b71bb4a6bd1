"""kube-controller-manager's flags of single controllers: node lifecycle and IPAM, endpoints, horizontal pod
autoscaler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, DURATION, FLOAT, INT, STRING, flag


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


_SYNCS, _PER_SLICE = 50, 1000


@dataclass(frozen=True)
class EndpointControllerOptions:
    title: ClassVar[str] = "endpoint controllers"

    concurrent_endpoint_syncs: int = flag(
        "concurrent-endpoint-syncs", INT, 5, "How many Endpoints are brought up to date at once."
    )
    endpoint_updates_batch_period: float = flag(
        "endpoint-updates-batch-period", DURATION, 0.0, "How long a change of a pod waits for more."
    )
    concurrent_service_endpoint_syncs: int = flag(
        "concurrent-service-endpoint-syncs", INT, 5, "For how many services slices are brought up to date at once."
    )
    endpointslice_updates_batch_period: float = flag(
        "endpointslice-updates-batch-period",
        DURATION,
        0.0,
        "How long a change of a pod waits for more.",
    )
    max_endpoints_per_slice: int = flag("max-endpoints-per-slice", INT, 100, "How many endpoints go into one slice.")
    mirroring_concurrent_service_endpoint_syncs: int = flag(
        "mirroring-concurrent-service-endpoint-syncs", INT, 5, "How many Endpoints are mirrored to slices at once."
    )
    mirroring_endpointslice_updates_batch_period: float = flag(
        "mirroring-endpointslice-updates-batch-period",
        DURATION,
        0.0,
        "How long a change of a mirrored slice waits for more.",
    )
    mirroring_max_endpoints_per_subset: int = flag(
        "mirroring-max-endpoints-per-subset", INT, 1000, "How many addresses of a subset are mirrored to a slice."
    )

    def validate(self) -> Iterator[str]:
        if self.concurrent_endpoint_syncs < 1:
            yield f"concurrent-endpoint-syncs must be greater than 0, but got {self.concurrent_endpoint_syncs}"
        for name, value, most in (
            ("concurrent-service-endpoint-syncs", self.concurrent_service_endpoint_syncs, _SYNCS),
            ("max-endpoints-per-slice", self.max_endpoints_per_slice, _PER_SLICE),
            ("mirroring-concurrent-service-endpoint-syncs", self.mirroring_concurrent_service_endpoint_syncs, _SYNCS),
            ("mirroring-max-endpoints-per-subset", self.mirroring_max_endpoints_per_subset, _PER_SLICE),
        ):
            if value < 1:
                yield f"{name} must not be less than 1, but got {value}"
            elif value > most:
                yield f"{name} must not be more than {most}, but got {value}"


@dataclass(frozen=True)
class AutoscalerOptions:
    title: ClassVar[str] = "horizontal pod autoscaler"

    concurrent_syncs: int = flag(
        "concurrent-horizontal-pod-autoscaler-syncs", INT, 5, "How many autoscalers are worked on at once."
    )
    sync_period: float = flag(
        "horizontal-pod-autoscaler-sync-period", DURATION, 15.0, "How often each autoscaler looks at its metrics."
    )
    downscale_stabilization: float = flag(
        "horizontal-pod-autoscaler-downscale-stabilization",
        DURATION,
        300.0,
        "For how long nothing is scaled below what was recommended, where an autoscaler does not say itself.",
    )
    tolerance: float = flag(
        "horizontal-pod-autoscaler-tolerance",
        FLOAT,
        0.1,
        "By how much use and target must differ, as a ratio, before anything is scaled.",
    )
    cpu_initialization_period: float = flag(
        "horizontal-pod-autoscaler-cpu-initialization-period",
        DURATION,
        300.0,
        "For how long after a pod's start its use of processor time counts only while it is ready.",
    )
    initial_readiness_delay: float = flag(
        "horizontal-pod-autoscaler-initial-readiness-delay",
        DURATION,
        30.0,
        "A pod that became unready within so long after its start counts as never having been ready.",
    )

    def validate(self) -> Iterator[str]:
        if self.concurrent_syncs < 1:
            name = "concurrent-horizontal-pod-autoscaler-syncs"
            yield f"{name} must be greater than 0, but got {self.concurrent_syncs}"

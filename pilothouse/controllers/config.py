"""Settings of single controllers that have several, from flags."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """Settings of the job controller."""

    concurrent_syncs: int = 5
    sync_batch_period: float = 1.0
    """Seconds over which pod events are batched."""
    pod_failure_backoff: float = 10.0
    max_pod_failure_backoff: float = 600.0
    """Initial (`pod_failure_backoff`) and maximum delay in seconds before a failed pod is replaced."""
    mutable_scheduling_directives: bool = True
    """Feature gate MutableSchedulingDirectivesForSuspendedJobs: suspension resets startTime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointConfig:
    """Settings of the endpoint controllers. A batch period is the delay over which pod changes are batched."""

    concurrent_endpoint_syncs: int = 5
    endpoint_updates_batch_period: float = 0.0
    concurrent_service_endpoint_syncs: int = 5
    endpointslice_updates_batch_period: float = 0.0
    max_endpoints_per_slice: int = 100
    mirroring_concurrent_service_endpoint_syncs: int = 5
    mirroring_endpointslice_updates_batch_period: float = 0.0
    mirroring_max_endpoints_per_subset: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIPAMConfig:
    """Settings of node-ipam-controller."""

    allocate_node_cidrs: bool = False
    cluster_cidrs: tuple[str, ...] = ()
    """CIDRs divided among the nodes: one, or one per IP family."""
    node_cidr_mask_size_ipv4: int = 24
    node_cidr_mask_size_ipv6: int = 64
    service_cidrs: tuple[str, ...] = ()
    """Service CIDRs, which are excluded from allocation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLifecycleConfig:
    """Settings of the node lifecycle controller."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerConfig:
    """Settings of the horizontal pod autoscaler."""

    concurrent_syncs: int = 5
    sync_period: float = 15.0
    downscale_stabilization: float = 300.0
    """Default downscale stabilization window in seconds."""
    tolerance: float = 0.1
    """Minimum relative deviation from the target before scaling."""
    cpu_initialization_period: float = 300.0
    """Seconds after a pod's start in which CPU usage counts only while the pod is ready."""
    initial_readiness_delay: float = 30.0
    """Seconds after a pod's start in which a transition to unready means that the pod was never ready."""
    configurable_tolerance: bool = True
    scale_to_zero: bool = False
    """Feature gates HPAConfigurableTolerance and HPAScaleToZero."""

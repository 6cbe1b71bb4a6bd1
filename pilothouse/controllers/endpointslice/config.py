"""Settings of the endpoint controllers."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


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

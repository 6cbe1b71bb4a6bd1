"""The choice of how the endpoints of the `kubernetes` service are kept."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

MASTER_COUNT, LEASE, NONE = RECONCILER_TYPES = ("master-count", "lease", "none")


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    reconciler_type: str = LEASE
    apiserver_count: int = 1
    """Number of servers, for the master-count reconciler."""

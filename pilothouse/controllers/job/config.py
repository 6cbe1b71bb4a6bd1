"""Settings of the job controller."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    concurrent_syncs: int = 5
    sync_batch_period: float = 1.0
    """Seconds over which pod events are batched."""
    pod_failure_backoff: float = 10.0
    max_pod_failure_backoff: float = 600.0
    """Initial (`pod_failure_backoff`) and maximum delay in seconds before a failed pod is replaced."""
    mutable_scheduling_directives: bool = True
    """Feature gate MutableSchedulingDirectivesForSuspendedJobs: suspension resets startTime."""

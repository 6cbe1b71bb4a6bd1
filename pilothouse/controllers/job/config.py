"""The settings of the job controller."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    concurrent_syncs: int = 5
    sync_batch_period: float = 1.0
    """Events of pods within so many seconds are worked through together."""
    pod_failure_backoff: float = 10.0
    max_pod_failure_backoff: float = 600.0
    """How long a pod that failed is not replaced: at first, and at most."""
    mutable_scheduling_directives: bool = True
    """The feature gate MutableSchedulingDirectivesForSuspendedJobs: a job that is suspended has not started."""

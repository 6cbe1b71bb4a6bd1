"""Exponential back-off of pod creation after pod failures: 10 s, doubled per further failure.

A success resets the back-off. State is in memory only: after a restart, previously counted failures cause no delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pilothouse.controllers.job.config import JobConfig
from pilothouse.controllers.job.pods import all_failures, finish_time
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class Backoff:
    failures: int = 0
    """Number of failures since the last success."""
    last_failure: datetime | None = None

    def after(self, succeeded: Sequence[Json], failed: Sequence[Json]) -> Backoff:
        """Return the back-off updated with these terminated pods."""
        if succeeded:
            last_success = max(map(finish_time, succeeded))
            since = [ended for ended in map(finish_time, failed) if ended > last_success]
            return Backoff(len(since), max(since, default=None))
        if failed:
            return Backoff(self.failures + len(failed), max(map(finish_time, failed)))
        return self

    def seconds_left(self, now: datetime, config: JobConfig) -> float:
        """Return the seconds until the next pod may be created."""
        if not self.failures or self.last_failure is None:
            return 0.0
        doubled: float = config.pod_failure_backoff * 2 ** min(self.failures - 1, 62)
        delay = doubled if self.failures == 1 else min(doubled, config.max_pod_failure_backoff)
        return max(0.0, delay - (now - self.last_failure).total_seconds())


def backoff_of_index(last_failed: Json | None) -> Backoff:
    """Return the back-off of an index; its last failed pod records the earlier failures."""
    return Backoff() if last_failed is None else Backoff(all_failures(last_failed) + 1, finish_time(last_failed))

"""How long no pod is made after pods have failed: ten seconds, twice as long after each further failure.

A success ends it. What is known of each job is kept in memory only: after a restart, failures that were counted
before no longer delay anything.
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
    """Since the last success."""
    last_failure: datetime | None = None

    def after(self, succeeded: Sequence[Json], failed: Sequence[Json]) -> Backoff:
        """Return what is known when these pods have ended, too."""
        if succeeded:
            last_success = max(map(finish_time, succeeded))
            since = [ended for ended in map(finish_time, failed) if ended > last_success]
            return Backoff(len(since), max(since, default=None))
        if failed:
            return Backoff(self.failures + len(failed), max(map(finish_time, failed)))
        return self

    def seconds_left(self, now: datetime, config: JobConfig) -> float:
        """Return how long to wait before the next pod is made."""
        if not self.failures or self.last_failure is None:
            return 0.0
        doubled: float = config.pod_failure_backoff * 2 ** min(self.failures - 1, 62)
        delay = doubled if self.failures == 1 else min(doubled, config.max_pod_failure_backoff)
        return max(0.0, delay - (now - self.last_failure).total_seconds())


def backoff_of_index(last_failed: Json | None) -> Backoff:
    """Return the back-off of one index, whose last failed pod knows how many failed before it."""
    return Backoff() if last_failed is None else Backoff(all_failures(last_failed) + 1, finish_time(last_failed))

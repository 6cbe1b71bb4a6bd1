"""State of one job sync: counted pods, uncounted pods and remaining work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from datetime import datetime

from pilothouse.controllers.config import JobConfig
from pilothouse.controllers.job.indexes import Indexes, indexes_of, parse_indexes
from pilothouse.controllers.job.pods import (
    all_failures,
    completion_index,
    count_failures,
    failure_count,
    finish_time,
    has_failed,
    has_succeeded,
    indexes_in,
    is_indexed,
    is_tracked,
    limits_each_index,
    match_failure,
    valid_index,
)
from pilothouse.kinds.pods import has_ended, is_active, is_ready, is_terminating
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, uid_of


@dataclass(slots=True, kw_only=True)
class SyncState:
    job: Json
    """A copy; the sync modifies its status."""
    pods: list[Json]
    now: datetime
    released: frozenset[str]
    """Uids of counted pods whose finalizer removal is not in the cache yet."""
    active_pods: list[Json]
    active: int
    ready: int
    terminating: int
    new_succeeded: list[Json]
    new_failed: list[Json]
    succeeded: int
    failed: int
    """Numbers of succeeded and failed pods, counted or not; for an indexed job, `succeeded` counts indexes."""
    backoff: Backoff
    counted_indexes: Indexes = field(default_factory=Indexes)
    """Indexes in status.completedIndexes."""
    succeeded_indexes: Indexes = field(default_factory=Indexes)
    failed_indexes: Indexes | None = None
    awaiting_replacement: dict[int, Json] = field(default_factory=dict)
    """Last failed pod of each index without another pod; it records the failure count, so it is kept."""
    finished: Json | None = None
    """The condition that ends the job."""

    @property
    def status(self) -> Json:
        status: Json = self.job["status"]
        return status

    @property
    def completions(self) -> int | None:
        completions: int | None = self.job["spec"].get("completions")
        return completions

    def uncounted(self, outcome: str) -> list[str]:
        """Return uids in uncountedTerminatedPods with the outcome "succeeded" or "failed"."""
        uids: list[str] = self.status["uncountedTerminatedPods"].get(outcome) or []
        return uids

    def is_pending(self, pod: Json) -> bool:
        """Return whether the pod still has to be counted and released."""
        return is_tracked(pod) and uid_of(pod) not in self.released

    def has_valid_index(self, pod: Json) -> bool:
        return not is_indexed(self.job) or valid_index(pod, self.job["spec"]["completions"]) is not None


def look_at(job: Json, pods: list[Json], *, released: frozenset[str], backoff: Backoff, now: datetime) -> SyncState:
    """Return the sync state. The caller must pass a copy of the job: its status is modified."""
    status = job["status"]
    status["uncountedTerminatedPods"] = dict(status.get("uncountedTerminatedPods") or {})
    pods = [pod for pod in pods if not has_ended(pod) or is_tracked(pod)]  # other ended pods are already counted
    active = list(filter(is_active, pods))
    state = SyncState(
        job=job,
        pods=pods,
        now=now,
        released=released,
        active_pods=active,
        active=len(active),
        ready=sum(map(is_ready, active)),
        terminating=sum(map(is_terminating, pods)),
        new_succeeded=[],
        new_failed=[],
        succeeded=0,
        failed=0,
        backoff=backoff,
    )
    _count(state)
    if is_indexed(job):
        completions = job["spec"]["completions"]
        status, tracked = state.status, list(filter(is_tracked, state.pods))
        state.counted_indexes = parse_indexes(status.get("completedIndexes") or "", completions)
        new = {valid_index(pod, completions) for pod in tracked if has_succeeded(pod)} - {None}
        state.succeeded_indexes = state.counted_indexes | indexes_of(index for index in new if index is not None)
        state.succeeded = len(state.succeeded_indexes)
        if limits_each_index(state.job):
            lost = {valid_index(pod, completions) for pod in tracked if _fails_its_index(state.job, pod)}
            before = parse_indexes(status.get("failedIndexes") or "", completions)
            state.failed_indexes = before | indexes_of(index for index in lost if index is not None)
            done = state.succeeded_indexes | state.failed_indexes
            active_indexes, last = indexes_in(state.active_pods), dict[int, Json]()
            for pod in state.pods:
                if not state.is_pending(pod) or not state.has_valid_index(pod) or not has_failed(pod, state.job):
                    continue
                index = completion_index(pod)
                if index is None or index in done or index in active_indexes:
                    continue
                if index not in last or _is_later(pod, last[index]):
                    last[index] = pod
            state.awaiting_replacement = last
    return state


def _count(state: SyncState) -> None:
    job, status = state.job, state.status
    succeeded, failed = state.uncounted("succeeded"), state.uncounted("failed")
    state.new_succeeded = list(_new(state, succeeded, has_succeeded))
    state.new_failed = list(_new(state, failed, lambda pod: has_failed(pod, job)))
    state.succeeded = (status.get("succeeded") or 0) + len(state.new_succeeded) + len(succeeded)
    state.failed = (status.get("failed") or 0) + count_failures(job, state.new_failed) + len(failed)
    state.backoff = state.backoff.after(state.new_succeeded, state.new_failed)


def _new(state: SyncState, uncounted: list[str], ended: Callable[[Json], bool]) -> Iterator[Json]:
    known = set(uncounted)
    for pod in state.pods:
        if state.is_pending(pod) and uid_of(pod) not in known and state.has_valid_index(pod) and ended(pod):
            yield pod


def _fails_its_index(job: Json, pod: Json) -> bool:
    if not has_failed(pod, job):
        return False
    match = match_failure(job, pod)
    limit: int = job["spec"]["backoffLimitPerIndex"]
    return match.action == "FailIndex" or (match.counts and failure_count(pod) >= limit)


def _is_later(pod: Json, than: Json) -> bool:
    return all_failures(pod) >= all_failures(than) and finish_time(pod) >= finish_time(than)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off of pod creation after pod failures: 10 s, doubled per further failure.

    A success resets the back-off. State is in memory only: after a restart, previously counted failures cause no delay.
    """

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

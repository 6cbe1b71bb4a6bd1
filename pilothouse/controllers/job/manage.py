"""Management of a job's active pods: creation up to the desired number, deletion above it, least progressed first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import groupby, islice

from pilothouse.controllers.config import JobConfig
from pilothouse.controllers.job.indexes import Indexes, indexes_of
from pilothouse.controllers.job.pod_changes import Deleted, PodChanges
from pilothouse.controllers.job.pods import (
    index_order,
    indexes_in,
    is_indexed,
    is_suspended,
    limits_each_index,
    replaces_only_failed,
    valid_index,
)
from pilothouse.controllers.job.sync_state import SyncState, backoff_of_index
from pilothouse.kinds.pods import is_ready, is_terminating, node_name, phase_of, ready_since
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, items, metadata
from pilothouse.machinery.times import parse_time

MAX_PER_SYNC = 500
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class PodManager:
    def __init__(self, changes: PodChanges, config: JobConfig, look_again: Callable[[str, float], None]) -> None:
        """`look_again` requeues a job key after a number of seconds."""
        self._changes = changes
        self._config = config
        self._look_again = look_again

    async def manage(self, state: SyncState, key: str) -> Exception | None:
        """Create or delete pods, never both; return the error, if any."""
        if is_suspended(state.job):
            return await self._delete(state, key, pods_to_remove(state.job, state.active_pods, state.active))
        wanted = wanted_active(state)
        surplus = pods_to_remove(state.job, state.active_pods, max(0, state.active - wanted))
        if surplus:
            return await self._delete(state, key, surplus[:MAX_PER_SYNC])
        terminating = state.terminating if replaces_only_failed(state.job) else 0
        missing = wanted - terminating - state.active
        return await self._create(state, key, min(missing, MAX_PER_SYNC)) if missing > 0 else None

    async def end(self, state: SyncState) -> Exception | None:
        """Delete all active pods of an ending job; return the error, if any."""
        deleted = await self._changes.delete_active(state.job, state.active_pods)
        _subtract(state, deleted)
        return deleted.error

    async def _delete(self, state: SyncState, key: str, pods: list[Json]) -> Exception | None:
        deleted = await self._changes.delete(state.job, key, pods)
        _subtract(state, deleted)
        return deleted.error

    async def _create(self, state: SyncState, key: str, missing: int) -> Exception | None:
        indexes: list[int] = []
        if is_indexed(state.job):
            indexes = list(islice(pending_indexes(state), missing))
        if limits_each_index(state.job):
            waits = {index: self._wait_of_index(state, index) for index in indexes}
            indexes = [index for index in indexes if waits[index] <= 0]
            wait = min(waits.values(), default=0.0) if not indexes else 0.0
        else:
            wait = state.backoff.seconds_left(state.now, self._config)
        if wait > 0:
            self._look_again(key, max(wait, self._config.sync_batch_period))
            return None
        count = len(indexes) if is_indexed(state.job) else missing
        return await self._changes.create(state, key, count, indexes) if count else None

    def _wait_of_index(self, state: SyncState, index: int) -> float:
        last_failed = state.awaiting_replacement.get(index)
        return backoff_of_index(last_failed).seconds_left(state.now, self._config)


def wanted_active(state: SyncState) -> int:
    """Return the desired number of active pods, at most the remaining completions.

    Without `completions`, no pods are started after the first success.
    """
    parallelism: int = state.job["spec"]["parallelism"]
    if state.completions is None:
        return state.active if state.succeeded else parallelism
    return max(0, min(parallelism, state.completions - state.succeeded))


def pending_indexes(state: SyncState) -> Iterable[int]:
    """Return the indexes without result or pod, ascending."""
    busy = indexes_in(state.active_pods)
    if replaces_only_failed(state.job):
        busy |= indexes_in(filter(is_terminating, state.pods))
    taken = state.succeeded_indexes | indexes_of(busy) | (state.failed_indexes or Indexes())
    return taken.missing(state.job["spec"]["completions"])


def _subtract(state: SyncState, deleted: Deleted) -> None:
    state.active -= deleted.pods
    state.terminating += deleted.pods
    state.ready -= deleted.ready


@dataclass(frozen=True, slots=True)
class _Progress:
    remove: list[Json]
    keep: list[Json]


def pods_to_remove(job: Json, active: Sequence[Json], at_least: int) -> list[Json]:
    """Return at least `at_least` pods to remove. Pods with an invalid or duplicate index are always removed."""
    progress = _one_of_each_index(active, job["spec"]["completions"]) if is_indexed(job) else _Progress([], [*active])
    missing = at_least - len(progress.remove)
    return [*progress.remove, *sorted(progress.keep, key=_progress)[:missing]] if missing > 0 else progress.remove


def _one_of_each_index(pods: Iterable[Json], completions: int) -> _Progress:
    remove, keep = list[Json](), list[Json]()
    for index, of_index in groupby(sorted(pods, key=index_order), key=lambda pod: valid_index(pod, completions)):
        same = [*of_index]
        *others, last = sorted(same, key=_progress) if len(same) > 1 else same
        remove += others
        (remove if index is None else keep).append(last)
    return _Progress(remove, keep)


def _progress(pod: Json) -> tuple[bool, int, bool, float, int, float]:
    """Sort key: unassigned, pending, not ready, recently ready, often restarted and young pods come first."""
    created = metadata(pod).get("creationTimestamp")
    since = _age_first(ready_since(pod)) if is_ready(pod) else 0.0
    born = _age_first(parse_time(created) if created else None)
    return bool(node_name(pod)), _PHASES.get(phase_of(pod), 0), is_ready(pod), since, -_most_restarts(pod), born


def _age_first(moment: datetime | None) -> float:
    return -math.inf if moment is None else -moment.timestamp()


def _most_restarts(pod: Json) -> int:
    statuses = items(pod, "status", "containerStatuses")
    return max((status.get("restartCount") or 0 for status in statuses), default=0)

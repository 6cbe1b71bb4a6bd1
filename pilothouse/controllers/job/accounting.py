"""Exactly-once counting of terminated pods.

A finalizer keeps each pod until it is counted. First the pod's uid is added to status.uncountedTerminatedPods; then the
finalizer is removed; then the uid is removed and the counter incremented. Succeeded indexes of an indexed job are
written at once, because recording an index is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from pilothouse.client.events.event import NORMAL, WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.job.indexes import indexes_of
from pilothouse.controllers.job.pod_changes import PodChanges
from pilothouse.controllers.job.pods import (
    COMPLETE,
    FAILED,
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    completion_index,
    ensure_condition,
    find_true,
    has_failed,
    has_succeeded,
    index_order,
    is_indexed,
    match_failure,
    new_condition,
    valid_index,
)
from pilothouse.controllers.job.sync_state import SyncState
from pilothouse.controllers.resources import JOBS
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, namespace_of, uid_of

_OUTCOMES = ("succeeded", "failed")
MAX_UNCOUNTED = 500
"""Maximum uncounted pods per sync; bounds the status size and the time per job."""
_NUMBERS = ("active", "succeeded", "failed")


@dataclass(slots=True)
class Accounts:
    uncounted: dict[str, dict[str, None]]
    """Pods to count once their finalizer is removed, by outcome, in status order."""
    to_release: list[Json] = field(default_factory=list)
    """Recorded pods, ready for finalizer removal."""
    succeeded_indexes: set[int] = field(default_factory=set)
    changed: bool = False

    @property
    def full(self) -> bool:
        """Return whether the limit per sync is reached, so that more pods may remain."""
        return len(self.succeeded_indexes) + sum(map(len, self.uncounted.values())) >= MAX_UNCOUNTED

    def add(self, outcome: str, uid: str) -> None:
        if uid not in self.uncounted[outcome]:
            self.uncounted[outcome][uid] = None
            self.changed = True


def write_down(state: SyncState) -> Accounts:
    """Record terminated pods in the status; return the accounts, including whether the status changed."""
    accounts = Accounts({outcome: dict.fromkeys(state.uncounted(outcome)) for outcome in _OUTCOMES})
    pods = sorted(state.pods, key=index_order) if is_indexed(state.job) else state.pods
    for pod in filter(state.is_pending, pods):
        if not _may_go(state, pod):
            continue
        accounts.to_release.append(pod)
        _write_down_pod(state, accounts, pod)
        if accounts.full:
            break
    state.status["uncountedTerminatedPods"] = {name: [*uids] for name, uids in accounts.uncounted.items() if uids}
    if is_indexed(state.job):
        succeeded = state.succeeded_indexes | indexes_of(accounts.succeeded_indexes)
        completed = {"completedIndexes": str(succeeded)} if succeeded else {}
        if state.failed_indexes is not None:
            completed["failedIndexes"] = str(state.failed_indexes)
        for name in ("completedIndexes", "failedIndexes"):
            if state.status.get(name) != completed.get(name):
                accounts.changed = True
            state.status.pop(name, None)
        state.status.update(completed)
        state.status["succeeded"] = len(succeeded)
    return accounts


def count_released(status: Json, pending: Iterable[str]) -> bool:
    """Count recorded pods whose finalizer is removed, i.e. not in `pending`; return whether there were any."""
    pending, changed, uncounted = set(pending), False, status["uncountedTerminatedPods"]
    for outcome in _OUTCOMES:
        before = uncounted.get(outcome) or []
        kept = [uid for uid in before if uid in pending]
        if len(kept) != len(before):
            status[outcome] = (status.get(outcome) or 0) + len(before) - len(kept)
            uncounted[outcome] = kept
            changed = True
    return changed


def announce_end(state: SyncState) -> bool:
    """Add the interim end condition to the status, before finalizers are removed; return whether it is new.

    Afterwards `state.finished` is the final condition.
    """
    if (condition := state.finished) is None:
        return False
    type_ = condition["type"]
    final = {FAILURE_TARGET: FAILED, SUCCESS_CRITERIA_MET: COMPLETE}.get(type_)
    if final is None:
        return False
    state.finished = new_condition(final, condition.get("reason") or "", condition.get("message") or "", state.now)
    if find_true(state.status, type_) is not None:
        return False
    state.status["conditions"] = [*(state.status.get("conditions") or ()), condition]
    return True


def enact_end(state: SyncState) -> bool:
    """Add the final condition, unless pods are terminating or uncounted; return whether it was added."""
    waiting = any(map(state.uncounted, _OUTCOMES)) or state.terminating > 0
    if state.finished is None or waiting:
        return False
    ensure_condition(state.status, state.finished)
    if state.finished["type"] == COMPLETE:
        state.status["completionTime"] = state.finished["lastTransitionTime"]
    return True


def _may_go(state: SyncState, pod: Json) -> bool:
    if is_deleting(state.job) or state.finished is not None or has_succeeded(pod):
        return True
    if not has_failed(pod, state.job):
        return False
    index = completion_index(pod)
    kept = None if index is None else state.awaiting_replacement.get(index)
    return kept is None or uid_of(kept) != uid_of(pod)


def _write_down_pod(state: SyncState, accounts: Accounts, pod: Json) -> None:
    uid = uid_of(pod)
    if has_succeeded(pod) and uid not in accounts.uncounted["failed"]:
        if not is_indexed(state.job):
            accounts.add("succeeded", uid)
            return
        index = valid_index(pod, state.job["spec"]["completions"])
        if index is not None and index not in state.counted_indexes:
            accounts.succeeded_indexes.add(index)
            accounts.changed = True
    elif _counts_as_failed(state, pod):
        accounts.add("failed", uid)


def _counts_as_failed(state: SyncState, pod: Json) -> bool:
    """Return whether the pod counts as failed. When the job has failed, so have its running pods."""
    job_failed = state.finished is not None and state.finished["type"] != SUCCESS_CRITERIA_MET
    if not (job_failed or has_failed(pod, state.job)) or not state.has_valid_index(pod):
        return False
    return match_failure(state.job, pod).counts


class StatusTracker:
    """Writes the status of a job, in an order that neither loses a pod nor counts a pod twice."""

    def __init__(
        self, client: Client, changes: PodChanges, recorder: EventRecorder, written: Callable[[Json], None]
    ) -> None:
        """`written` is called with each job as stored by the server."""
        self._jobs = client.for_resource(JOBS)
        self._changes = changes
        self._recorder = recorder
        self._written = written

    async def track(self, state: SyncState, key: str, *, changed: bool, counted: Callable[[], None]) -> None:
        """Count terminated pods, remove their finalizers, and finish the job if due.

        `counted` is called after the status with the terminated pods is written. Raises StatusError.
        """
        pending = {uid_of(pod) for pod in state.pods if state.is_pending(pod)}
        changed |= count_released(state.status, pending)
        accounts = write_down(state)
        changed |= accounts.changed
        changed |= announce_end(state)
        if changed:
            await self._write(state)
            counted()
        changed = await self._release(state, key, accounts, pending)
        ended = not accounts.full and enact_end(state)
        if changed or ended:
            await self._write(state)
        if ended and state.finished is not None:
            job = state.job
            condition = state.finished
            if condition["type"] != COMPLETE:
                self._recorder.event(job, WARNING, condition["reason"], condition["message"])
                return
            completions = job["spec"].get("completions")
            if completions is not None and (job["status"].get("succeeded") or 0) > completions:
                message = "Too many succeeded pods running after completion count reached"
                self._recorder.event(job, WARNING, "TooManySucceededPods", message)
            self._recorder.event(job, NORMAL, "Completed", "Job completed")

    async def _release(self, state: SyncState, key: str, accounts: Accounts, pending: set[str]) -> bool:
        """Remove finalizers; return whether the status changed. On error, writes partial progress, then raises."""
        released = await self._changes.release(key, accounts.to_release)
        changed = count_released(state.status, pending - released.uids)
        if released.error is not None:
            if changed:
                await self._write(state)
            raise released.error
        return changed

    async def _write(self, state: SyncState) -> None:
        status = {name: value for name, value in state.status.items() if value or name not in _NUMBERS}
        job = await self._jobs.namespace(namespace_of(state.job)).update_status({**state.job, "status": status})
        self._written(job)
        status = job["status"]
        status["uncountedTerminatedPods"] = status.get("uncountedTerminatedPods") or {}
        state.job = job

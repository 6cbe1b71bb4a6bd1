"""Decision whether a job ends, and with which condition.

A decision of an earlier sync is final. Otherwise failure takes precedence over success.
"""

from __future__ import annotations

from datetime import datetime

from pilothouse.controllers.job.indexes import Indexes, parse_indexes
from pilothouse.controllers.job.pods import (
    FAILED,
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    find_true,
    has_failed,
    is_indexed,
    is_suspended,
    match_failure,
    new_condition,
)
from pilothouse.controllers.job.sync_state import SyncState
from pilothouse.kinds.pods import phase_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, items, part
from pilothouse.machinery.times import parse_time


@dataclass(frozen=True, slots=True)
class _Reason:
    reason: str
    message: str


_BACKOFF_LIMIT = _Reason("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE = _Reason("DeadlineExceeded", "Job was active longer than specified deadline")
_TOO_MANY_INDEXES = _Reason(
    "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
_FAILED_INDEXES = _Reason("FailedIndexes", "Job has failed indexes")
_COMPLETIONS = _Reason("CompletionsReached", "Reached expected number of succeeded pods")


def verdict(state: SyncState) -> Json | None:
    """Return the condition that ends the job; None if it continues."""
    if (met := find_true(state.status, SUCCESS_CRITERIA_MET)) is not None:
        return met
    if (target := find_true(state.status, FAILURE_TARGET)) is not None:
        return new_condition(FAILED, target.get("reason") or "", target.get("message") or "", state.now)
    if (failure := _failure(state)) is not None:
        return new_condition(FAILURE_TARGET, failure.reason, failure.message, state.now)
    if is_indexed(state.job) and (matched := match_success(state.job, state.succeeded_indexes)) is not None:
        return new_condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", matched, state.now)
    return None


def completed(state: SyncState) -> Json | None:
    """Return SuccessCriteriaMet if all completions are reached.

    Without `completions`, one success suffices once no pod is active.
    """
    wanted = 1 if state.completions is None else state.completions
    if state.succeeded < wanted or state.active:
        return None
    return new_condition(SUCCESS_CRITERIA_MET, _COMPLETIONS.reason, _COMPLETIONS.message, state.now)


def seconds_to_deadline(job: Json, now: datetime) -> float | None:
    """Return the seconds until activeDeadlineSeconds; None if unlimited, unstarted or suspended."""
    limit, start = job["spec"].get("activeDeadlineSeconds"), part(job, "status").get("startTime")
    began = parse_time(start) if start else None
    if limit is None or began is None or is_suspended(job):
        return None
    return float(limit) - (now - began).total_seconds()


def _failure(state: SyncState) -> _Reason | None:
    job = state.job
    if message := _failed_by_policy(state):
        return _Reason("PodFailurePolicy", message)
    if state.failed > job["spec"]["backoffLimit"] or _restarted_too_often(job, state.pods):
        return _BACKOFF_LIMIT
    left = seconds_to_deadline(job, state.now)
    if left is not None and left <= 0:
        return _DEADLINE
    if not state.failed_indexes:
        return None
    limit, failed = state.job["spec"].get("maxFailedIndexes"), len(state.failed_indexes)
    if limit is not None and failed > limit:
        return _TOO_MANY_INDEXES
    done = failed + len(state.succeeded_indexes)
    return _FAILED_INDEXES if done >= state.job["spec"]["completions"] else None


def _failed_by_policy(state: SyncState) -> str:
    if state.job["spec"].get("podFailurePolicy") is None:
        return ""
    failed = (pod for pod in state.pods if has_failed(pod, state.job))
    return next((message for pod in failed if (message := match_failure(state.job, pod).message)), "")


def _restarted_too_often(job: Json, pods: list[Json]) -> bool:
    """Return whether container restarts reach backoffLimit; with restartPolicy OnFailure each restart is a failure."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(_restarts(pod) for pod in pods if phase_of(pod) in ("Running", "Pending"))
    return restarts >= max(1, int(job["spec"]["backoffLimit"]))


def _restarts(pod: Json) -> int:
    status = pod["status"]
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return sum(container.get("restartCount") or 0 for container in containers)


def match_success(job: Json, succeeded: Indexes) -> str | None:
    """Return the message of the first satisfied rule; None without a match."""
    rules = items(job["spec"], "successPolicy", "rules")
    for number, rule in enumerate(rules) if succeeded else ():
        if _is_met(rule, succeeded, job["spec"]["completions"]):
            return f"Matched rules at index {number}"
    return None


def _is_met(rule: Json, succeeded: Indexes, completions: int) -> bool:
    wanted, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if wanted is None:
        return count is not None and len(succeeded) >= count
    required = parse_indexes(wanted, completions)
    if not required:
        return False
    met = len(required & succeeded)
    return met == len(required) or (count is not None and met >= count)

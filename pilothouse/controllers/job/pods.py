"""Fields of jobs and their pods: completion index, failure counts, finish time, conditions, podFailurePolicy."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pilothouse.kinds.conditions import Condition, find_in, timed_condition, with_condition
from pilothouse.kinds.deletion import deletion_requested, has_finalizer, is_deleting
from pilothouse.kinds.pods import phase_of, ready_condition, sidecar_names
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, items, metadata, name_of, namespace_of, part
from pilothouse.machinery.times import optional_time

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"

_MAX_INT32 = 2**31 - 1
_BEGINNING = datetime.min.replace(tzinfo=UTC)
CONTROLLER_NAME = "kubernetes.io/job-controller"
_MODES = (None, "NonIndexed", "Indexed")
COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
SUCCESS_CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"


def is_tracked(pod: Json) -> bool:
    """Return whether the pod has the tracking finalizer."""
    return has_finalizer(pod, TRACKING_FINALIZER)


def has_succeeded(pod: Json) -> bool:
    return phase_of(pod) == "Succeeded"


def has_failed(pod: Json, job: Json) -> bool:
    """Return whether the pod counts as failed; a terminating pod may never report phase Failed."""
    if phase_of(pod) == "Failed":
        return True
    if replaces_only_failed(job):
        return False
    return is_deleting(pod) and not has_succeeded(pod)


def completion_index(pod: Json) -> int | None:
    return _natural(annotations_of(pod).get(COMPLETION_INDEX))


def index_order(pod: Json) -> int:
    """Sort key: the completion index; pods without an index come first."""
    index = completion_index(pod)
    return -1 if index is None else index


def valid_index(pod: Json, completions: int) -> int | None:
    """Return the pod's index if below `completions`, else None."""
    index = completion_index(pod)
    return None if index is None or index >= completions else index


def indexes_in(pods: Iterable[Json]) -> set[int]:
    return {index for pod in pods if (index := completion_index(pod)) is not None}


def failure_count(pod: Json) -> int:
    """Return the number of earlier failures of the pod's index."""
    return _count(pod, FAILURE_COUNT)


def ignored_failure_count(pod: Json) -> int:
    return _count(pod, IGNORED_FAILURE_COUNT)


def all_failures(pod: Json) -> int:
    return failure_count(pod) + ignored_failure_count(pod)


def finish_time(pod: Json) -> datetime:
    """Return the finish time: from containers, else the Ready condition, the deletion, or the creation."""
    status = pod.get("status") or {}
    sidecars = sidecar_names(pod["spec"])
    statuses = [*(status.get("containerStatuses") or ())]
    statuses += [
        container_status
        for container_status in status.get("initContainerStatuses") or ()
        if container_status["name"] in sidecars
    ]
    ended = [optional_time(part(status, "state", "terminated").get("finishedAt")) for status in statuses]
    last_end = max((moment for moment in ended if moment is not None), default=None) if None not in ended else None
    end = last_end or _became_unready(pod) or deletion_requested(pod)
    return end or optional_time(metadata(pod).get("creationTimestamp")) or _BEGINNING


def _became_unready(pod: Json) -> datetime | None:
    ready = ready_condition(pod)
    return optional_time(ready.get("lastTransitionTime")) if ready.get("status") == "False" else None


def _count(pod: Json, annotation: str) -> int:
    count = _natural(annotations_of(pod).get(annotation))
    return 0 if count is None or count > _MAX_INT32 else count


def _natural(text: str | None) -> int | None:
    """Parse a natural number; None if invalid, because users can write annotations."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def is_indexed(job: Json) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_of_a_known_mode(job: Json) -> bool:
    return job["spec"].get("completionMode") in _MODES


def is_suspended(job: Json) -> bool:
    return bool(job["spec"].get("suspend"))


def limits_each_index(job: Json) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def replaces_only_failed(job: Json) -> bool:
    """Return whether a terminating pod is replaced only after it has ended."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy") is not None


def is_finished(job: Json) -> bool:
    return any(
        condition["status"] == "True"
        for condition in items(job, "status", "conditions")
        if condition["type"] in ("Complete", "Failed")
    )


def is_managed_elsewhere(job: Json) -> bool:
    return job["spec"].get("managedBy") not in (None, CONTROLLER_NAME)


def new_condition(type_: str, reason: str, message: str, now: datetime, *, status: str = "True") -> Json:
    return timed_condition(Condition(type_, status, reason, message), now, "lastProbeTime")


def find_true(status: Json, type_: str) -> Json | None:
    condition = find_in(status, type_)
    return condition if condition is not None and condition["status"] == "True" else None


def ensure_condition(status: Json, new: Json) -> bool:
    """Set the condition; return whether the status changed.

    An absent condition is not added with status False.
    """
    old = find_in(status, new["type"])
    if old is None and new["status"] == "False":
        return False
    if old is not None and all(old.get(field) == new[field] for field in ("status", "reason", "message")):
        return False
    status["conditions"] = with_condition(status.get("conditions") or (), new)
    return True


@dataclass(frozen=True, slots=True)
class FailureMatch:
    """Action of the first matching rule; empty without a match."""

    action: str = ""
    message: str = ""
    """Failure message of the job, for action FailJob."""

    @property
    def counts(self) -> bool:
        """Return whether the failure counts towards the back-off limits."""
        return self.action != "Ignore"


NO_MATCH = FailureMatch()


def match_failure(job: Json, pod: Json) -> FailureMatch:
    """Return the policy's match for a failed pod."""
    policy = job["spec"].get("podFailurePolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        if (reason := _why(rule, pod)) is not None:
            action = rule["action"]
            message = f"{reason} matching {action} rule at index {number}" if action == "FailJob" else ""
            return FailureMatch(action, message)
    return NO_MATCH


def count_failures(job: Json, pods: Iterable[Json]) -> int:
    return sum(match_failure(job, pod).counts for pod in pods)


def _why(rule: Json, pod: Json) -> str | None:
    status, where = pod.get("status") or {}, f"{namespace_of(pod)}/{name_of(pod)}"
    if (codes := rule.get("onExitCodes")) is not None:
        containers = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
        container_status = next((container for container in containers if _matches(container, codes)), None)
        if container_status is None:
            return None
        return (
            f"Container {container_status['name']} for pod {where} failed with exit code {_exit_code(container_status)}"
        )
    patterns = rule.get("onPodConditions") or ()
    wanted = {(pattern["type"], pattern.get("status")) for pattern in patterns}
    condition = next(
        (
            condition
            for condition in status.get("conditions") or ()
            if (condition["type"], condition["status"]) in wanted
        ),
        None,
    )
    return None if condition is None else f"Pod {where} has condition {condition['type']}"


def _matches(container: Json, codes: Json) -> bool:
    """Return whether a failed container matches the exit code rule; running or successful containers never match."""
    code = _exit_code(container)
    if not code or codes.get("containerName") not in (None, container["name"]):
        return False
    listed = code in (codes.get("values") or ())
    return listed if codes["operator"] == "In" else not listed and codes["operator"] == "NotIn"


def _exit_code(container: Json) -> int:
    code: int = ((container.get("state") or {}).get("terminated") or {}).get("exitCode") or 0
    return code

"""Job-related fields of a pod: completion index, failure counts and finish time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pilothouse.controllers.job.spec import replaces_only_failed
from pilothouse.kinds.deletion import deletion_requested, is_deleting
from pilothouse.kinds.finalizers import has_finalizer
from pilothouse.kinds.pods import phase_of, ready_condition, sidecar_names
from pilothouse.machinery.objects import Json, annotations_of, metadata, part
from pilothouse.machinery.times import optional_time

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"

_MAX_INT32 = 2**31 - 1
_BEGINNING = datetime.min.replace(tzinfo=UTC)


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
    found = _containers_ended(pod) or _became_unready(pod) or deletion_requested(pod)
    return found or optional_time(metadata(pod).get("creationTimestamp")) or _BEGINNING


def _containers_ended(pod: Json) -> datetime | None:
    """Return the finish time of the last container, including sidecars but not other init containers."""
    status = pod.get("status") or {}
    sidecars = sidecar_names(pod["spec"])
    statuses = [*(status.get("containerStatuses") or ())]
    statuses += [each for each in status.get("initContainerStatuses") or () if each["name"] in sidecars]
    ended = [optional_time(part(each, "state", "terminated").get("finishedAt")) for each in statuses]
    return max((each for each in ended if each is not None), default=None) if None not in ended else None


def _became_unready(pod: Json) -> datetime | None:
    ready = ready_condition(pod)
    return optional_time(ready.get("lastTransitionTime")) if ready.get("status") == "False" else None


def _count(pod: Json, annotation: str) -> int:
    count = _natural(annotations_of(pod).get(annotation))
    return 0 if count is None or count > _MAX_INT32 else count


def _natural(text: str | None) -> int | None:
    """Parse a natural number; None if invalid, because users can write annotations."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None

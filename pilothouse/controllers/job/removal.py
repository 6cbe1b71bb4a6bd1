"""Choice of surplus pods of a job: the least progressed are removed first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby

from pilothouse.controllers.job.pods import index_order, valid_index
from pilothouse.controllers.job.spec import is_indexed
from pilothouse.kinds.pods import is_ready, node_name, phase_of, ready_since
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, items, metadata
from pilothouse.machinery.times import parse_time

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True)
class _Progress:
    remove: list[Json]
    keep: list[Json]


def pods_to_remove(job: Json, active: Sequence[Json], at_least: int) -> list[Json]:
    """Return at least `at_least` pods to remove. Pods with an invalid or duplicate index are always removed."""
    found = _one_of_each_index(active, job["spec"]["completions"]) if is_indexed(job) else _Progress([], [*active])
    missing = at_least - len(found.remove)
    return [*found.remove, *sorted(found.keep, key=_progress)[:missing]] if missing > 0 else found.remove


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
    return max((each.get("restartCount") or 0 for each in statuses), default=0)

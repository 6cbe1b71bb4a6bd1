"""Ranking of pods for scale-down: the least valuable pods are deleted first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cmp_to_key

from pilothouse.kinds.pods import is_ready, node_name, phase_of, ready_since, sidecar_names
from pilothouse.machinery.objects import Json, annotations_of, metadata, uid_of
from pilothouse.machinery.times import optional_time

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_LEAST_COST, _GREATEST_COST = -(2**31), 2**31 - 1
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def sorted_for_deletion(pods: Sequence[Json], now: datetime, ranks: Mapping[str, int] | None = None) -> list[Json]:
    """Sort pods by deletion priority, first to delete first.

    `ranks` maps pod uid to the number of related pods on its node; pods on crowded nodes are deleted earlier. Ages are
    compared by powers of two, then by uid, so that the newest node is not always drained first.
    """
    known = ranks or {}

    def compare(one: Json, other: Json) -> int:
        first, second = _state(one, known), _state(other, known)
        if first != second:
            return -1 if first < second else 1
        if is_ready(one) and (order := _newest_first(ready_since(one), ready_since(other), now, (one, other))):
            return order
        if (restarts := _restarts(one)) != (others := _restarts(other)):
            return -1 if restarts > others else 1
        return _newest_first(_created(one), _created(other), now, (one, other))

    return sorted(pods, key=cmp_to_key(compare))


def _state(pod: Json, ranks: Mapping[str, int]) -> tuple[bool, int, bool, int, int]:
    """Sort key: unassigned, pending, not ready, low-cost and crowded pods come first."""
    phase = _PHASES.get(phase_of(pod), 0)
    return bool(node_name(pod)), phase, is_ready(pod), deletion_cost(pod), -ranks.get(uid_of(pod), 0)


def deletion_cost(pod: Json) -> int:
    """Return the pod-deletion-cost annotation; 0 if missing or invalid."""
    text = annotations_of(pod).get(DELETION_COST) or ""
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if _LEAST_COST <= cost <= _GREATEST_COST else 0


def _newest_first(one: datetime | None, other: datetime | None, now: datetime, pods: tuple[Json, Json]) -> int:
    """Compare two times, newest first; a missing time counts as newest."""
    if one == other:
        return 0
    if one is None or other is None:
        return -1 if one is None else 1
    if difference := _power(now, one) - _power(now, other):
        return difference
    return -1 if uid_of(pods[0]) < uid_of(pods[1]) else 1


def _power(now: datetime, moment: datetime) -> int:
    nanoseconds = (now - moment).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _created(pod: Json) -> datetime | None:
    return optional_time(metadata(pod).get("creationTimestamp"))


def _restarts(pod: Json) -> tuple[int, int]:
    """Return the maximum restart counts of containers and of sidecars."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = sidecar_names(spec)
    of_sidecars = (
        container_status
        for container_status in status.get("initContainerStatuses") or ()
        if container_status.get("name") in sidecars
    )
    return _most(status.get("containerStatuses") or ()), _most(of_sidecars)


def _most(statuses: Iterable[Json]) -> int:
    return max((status.get("restartCount") or 0 for status in statuses), default=0)

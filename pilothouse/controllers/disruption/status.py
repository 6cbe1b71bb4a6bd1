"""Status of a PodDisruptionBudget, from its pods and their expected number.

Evicted pods stay in disruptedPods until their deletion is observed, for at most two minutes, and meanwhile do not count
as healthy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from datetime import datetime, timedelta

from pilothouse.kinds.conditions import conditions_of, find_condition, keep_transition, with_condition
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import is_ready
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import scaled_int_or_percent
from pilothouse.machinery.objects import Json, metadata, name_of, part
from pilothouse.machinery.times import format_time, parse_time

DELETION_TIMEOUT = timedelta(minutes=2)
_TYPE = "DisruptionAllowed"


@dataclass(frozen=True, slots=True)
class Wanted:
    expected: int
    healthy: int


@dataclass(frozen=True, slots=True)
class Disrupted:
    pods: dict[str, str]
    """Eviction time by pod name."""
    overdue: list[Json] = field(default_factory=list)
    """Pods that were not deleted in time."""
    recheck: timedelta | None = None


def scaled(value: int | str, total: int) -> int:
    """Return an absolute number, or a percentage of the total, rounded up."""
    return scaled_int_or_percent(value, total, round_up=True)


def disrupted(pods: Iterable[Json], budget: Json, now: datetime) -> Disrupted:
    disrupted_pods = part(budget, "status", "disruptedPods")
    kept, overdue, recheck = {}, [], None
    for pod in pods:
        since = disrupted_pods.get(name_of(pod))
        if since is None or is_deleting(pod):
            continue
        left = DELETION_TIMEOUT - (now - (parse_time(since) or now - 2 * DELETION_TIMEOUT))
        if left < timedelta():
            overdue.append(pod)
        else:
            kept[name_of(pod)] = since
            recheck = left if recheck is None else min(recheck, left)
    return Disrupted(kept, overdue, recheck)


def count_healthy(pods: Iterable[Json], evicted: Disrupted) -> int:
    staying = (pod for pod in pods if not is_deleting(pod) and name_of(pod) not in evicted.pods)
    return sum(map(is_ready, staying))


def new_status(budget: Json, wanted: Wanted, *, healthy: int, evicted: Disrupted, now: datetime) -> Json:
    """Return the status. With no pods expected, no disruption is allowed: the status may be stale when the first pod
    appears."""
    allowed = max(0, healthy - wanted.healthy) if wanted.expected > 0 else 0
    generation = metadata(budget).get("generation") or 0
    status: Json = {
        "currentHealthy": healthy,
        "desiredHealthy": wanted.healthy,
        "disruptionsAllowed": allowed,
        "expectedPods": wanted.expected,
        "observedGeneration": generation,
    }
    if evicted.pods:
        status["disruptedPods"] = evicted.pods
    value, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    condition: Json = {"status": value, "reason": reason, "message": "", "observedGeneration": generation}
    return status | {"conditions": _with_condition(budget, condition, now)}


def failed_status(budget: Json, reason: str, now: datetime) -> Json:
    """Return the status after a failed sync, which allows no disruptions."""
    status = budget.get("status") or {}
    condition: Json = {"status": "False", "reason": "SyncFailed", "message": reason}
    if status.get("observedGeneration"):
        condition["observedGeneration"] = status["observedGeneration"]
    return {**status, "disruptionsAllowed": 0, "conditions": _with_condition(budget, condition, now)}


def _with_condition(budget: Json, condition: Json, now: datetime) -> list[Json]:
    """Set the condition; lastTransitionTime changes only with its status."""
    new: Json = {"type": _TYPE, "lastTransitionTime": format_time(now), **condition}
    return with_condition(conditions_of(budget), keep_transition(new, find_condition(budget, _TYPE)))

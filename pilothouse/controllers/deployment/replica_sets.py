"""Replica sets of a deployment: new and old, sizes, bounds of a rolling update, and annotations.

Annotations hold the revision, the revision history, and the size of the deployment at the last scaling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from pilothouse.controllers.workloads.pod_control import POD_TEMPLATE_HASH
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import parse_int64, scaled_int_or_percent
from pilothouse.machinery.objects import Json, annotations_of, labels_of, name_of, text, uid_of

_TERMINATING = "terminatingReplicas"

Age: TypeAlias = tuple[str, str]
ROLLING_UPDATE, RECREATE = "RollingUpdate", "Recreate"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NOT_COPIED = frozenset((_LAST_APPLIED, REVISION, HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO))
"""Annotations that are not copied between deployment and replica set."""
MAX_HISTORY_CHARACTERS = 2000
_MAX_INT32 = 2**31 - 1


@dataclass(slots=True)
class ReplicaSets:
    """The replica sets of a deployment, split into new and old."""

    new: Json | None
    """The replica set with the deployment's current template."""
    old: list[Json] = field(default_factory=list)

    @property
    def all(self) -> list[Json]:
        return self.old if self.new is None else [*self.old, self.new]

    @property
    def active_old(self) -> list[Json]:
        return active(self.old)


def sorted_out(deployment: Json, replica_sets: Iterable[Json]) -> ReplicaSets:
    """Split replica sets into new and old. If several match the template, as after an upgrade, the oldest is the new
    one."""
    by_age = sorted(replica_sets, key=age)
    template = deployment["spec"]["template"]
    new = next(
        (replica_set for replica_set in by_age if same_template(replica_set["spec"]["template"], template)), None
    )
    return ReplicaSets(
        new, [replica_set for replica_set in by_age if new is None or uid_of(replica_set) != uid_of(new)]
    )


def same_template(one: Json, other: Json) -> bool:
    """Return whether the templates are equal, ignoring the pod-template-hash label."""
    return one.get("spec") == other.get("spec") and _meta_without_hash(one) == _meta_without_hash(other)


def _meta_without_hash(template: Json) -> Json:
    meta = {name: value for name, value in (template.get("metadata") or {}).items() if name != "labels"}
    return meta | {"labels": {key: value for key, value in labels_of(template).items() if key != POD_TEMPLATE_HASH}}


def size(obj: Json) -> int:
    """Return the desired replicas of a deployment or replica set."""
    return int(obj["spec"]["replicas"])


def available(replica_set: Json) -> int:
    return int(_status(replica_set).get("availableReplicas") or 0)


def total_size(replica_sets: Iterable[Json]) -> int:
    return sum(map(size, replica_sets))


def total(replica_sets: Iterable[Json], count: str) -> int:
    """Return the sum of a status field."""
    return sum(_status(replica_set).get(count) or 0 for replica_set in replica_sets)


def total_terminating(replica_sets: Iterable[Json]) -> int | None:
    """Return the total of terminating pods; None if a replica set with observedGeneration does not report it."""
    known = [
        status for status in map(_status, replica_sets) if status.get("observedGeneration") or _TERMINATING in status
    ]
    counts = [status.get(_TERMINATING) for status in known]
    return None if None in counts else sum(count for count in counts if count is not None)


def active(replica_sets: Iterable[Json]) -> list[Json]:
    return [replica_set for replica_set in replica_sets if size(replica_set) > 0]


def active_or_latest(sets: ReplicaSets) -> Json | None:
    """Return the only active replica set, or the newest if all are scaled to 0; None if several are active or none
    exists."""
    wanting = active(sets.all)
    if len(wanting) > 1 or not sets.all:
        return None
    return wanting[0] if wanting else sets.new or max(sets.old, key=age)


def age(replica_set: Json) -> Age:
    """Sort key from oldest to newest."""
    return (replica_set["metadata"].get("creationTimestamp") or "", name_of(replica_set))


def largest_first(replica_sets: Sequence[Json], *, newest_first: bool) -> list[Json]:
    """Sort by size, then by age."""
    by_age = sorted(replica_sets, key=age, reverse=newest_first)
    return sorted(by_age, key=lambda obj: -size(obj))


def _status(obj: Json) -> Json:
    return obj.get("status") or {}


@dataclass(frozen=True, slots=True)
class Fenceposts:
    surge: int
    unavailable: int


def strategy_of(deployment: Json) -> str:
    return str(text(deployment["spec"], "strategy", "type"))


def resolve(max_surge: int | str, max_unavailable: int | str, desired: int) -> Fenceposts:
    """Resolve percentages: surge is rounded up, unavailable down.

    If both resolve to 0, unavailable becomes 1, so that the update can proceed; a surge might exceed a quota.
    """
    surge, unavailable = (
        scaled_int_or_percent(max_surge, desired, round_up=True),
        scaled_int_or_percent(max_unavailable, desired, round_up=False),
    )
    return Fenceposts(surge, 1 if surge == unavailable == 0 else unavailable)


def fenceposts(deployment: Json) -> Fenceposts:
    """Return the bounds of a rolling update; other strategies have (0, 0). `unavailable` is at most the desired
    size."""
    if strategy_of(deployment) != ROLLING_UPDATE:
        return Fenceposts(0, 0)
    desired = size(deployment)
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    resolved = resolve(rolling.get("maxSurge") or 0, rolling.get("maxUnavailable") or 0, desired)
    return Fenceposts(resolved.surge, min(resolved.unavailable, desired))


def max_size(deployment: Json) -> int:
    """Return the maximum total size of all replica sets."""
    return size(deployment) + fenceposts(deployment).surge


def min_available(deployment: Json) -> int:
    return size(deployment) - fenceposts(deployment).unavailable


def new_set_size(deployment: Json, replica_sets: Iterable[Json], current: int) -> int:
    """Return the next size of the new replica set, given its `current` size; `replica_sets` includes the new set."""
    if strategy_of(deployment) == RECREATE:
        return size(deployment)
    room = max_size(deployment) - total_size(replica_sets)
    return current if room <= 0 else current + min(room, size(deployment) - current)


def max_scaled_down(deployment: Json, new: Json, old: Iterable[Json]) -> int:
    """Return the number of pods that can be removed from old replica sets now. Unavailable pods of the new set count
    against maxUnavailable, so that pods that never become ready do not displace working pods."""
    missing = size(new) - available(new)
    return total_size((*old, new)) - min_available(deployment) - missing


def revision_of(obj: Json) -> int | None:
    """Return the revision; 0 if absent, None if not a number."""
    text = annotations_of(obj).get(REVISION)
    return 0 if text is None else _number(text)


def max_revision(replica_sets: Iterable[Json]) -> int:
    return max((revision_of(replica_set) or 0 for replica_set in replica_sets), default=0)


def last_revision(replica_sets: Iterable[Json]) -> int:
    """Return the second highest revision; 0 if there is none."""
    known = sorted(
        (revision for replica_set in replica_sets if (revision := revision_of(replica_set)) is not None), reverse=True
    )
    return max(0, known[1]) if len(known) > 1 else 0


def by_revision(replica_set: Json) -> tuple[int, Age]:
    """Sort key from oldest to newest revision; invalid revisions sort first."""
    return (revision_of(replica_set) or 0, age(replica_set))


def copied_annotations(deployment: Json) -> dict[str, str]:
    return {key: value for key, value in annotations_of(deployment).items() if key not in NOT_COPIED}


def size_annotations(deployment: Json) -> dict[str, str]:
    """Return the annotations that record the deployment's size on a replica set."""
    return {DESIRED_REPLICAS: str(size(deployment)), MAX_REPLICAS: str(max_size(deployment))}


def annotations_of_new_set(deployment: Json, replica_set: Json, revision: int) -> dict[str, str]:
    """Return the desired annotations of the new replica set.

    The revision only increases. On a rollback, the previous revision is appended to the revision history.
    """
    annotations = annotations_of(replica_set) | copied_annotations(deployment)
    known = annotations.get(REVISION)
    before = _number(known) if known else 0
    if before is None or before >= revision:
        return annotations
    annotations[REVISION] = str(revision)
    if known is not None:
        annotations[HISTORY] = _history(annotations.get(HISTORY, ""), known)
    return annotations


def desired_replicas(replica_set: Json) -> int | None:
    """Return the deployment's size when this replica set was last scaled; None if unknown."""
    return _count(replica_set, DESIRED_REPLICAS)


def max_replicas(replica_set: Json) -> int | None:
    """Return the maximum total size when this replica set was last scaled; None if unknown."""
    return _count(replica_set, MAX_REPLICAS)


def _history(history: str, revision: str) -> str:
    """Append a revision; the oldest revisions are dropped beyond the maximum length."""
    if not history:
        return revision
    revisions = [*history.split(","), revision]
    while len(joined := ",".join(revisions)) > MAX_HISTORY_CHARACTERS and len(revisions) > 1:
        revisions.pop(0)
    return joined if len(joined) <= MAX_HISTORY_CHARACTERS else history


def _count(replica_set: Json, annotation: str) -> int | None:
    text = annotations_of(replica_set).get(annotation) or ""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    return number if 0 <= number <= _MAX_INT32 else None


def _number(text: str) -> int | None:
    try:
        return parse_int64(text)
    except ValueError:
        return None

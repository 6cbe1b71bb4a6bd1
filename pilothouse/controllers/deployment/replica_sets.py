"""Replica sets of a deployment: new and old, sizes and sort order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from pilothouse.controllers.workloads.template_hash import POD_TEMPLATE_HASH
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, labels_of, name_of, uid_of

_TERMINATING = "terminatingReplicas"

Age: TypeAlias = tuple[str, str]


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
    new = next((each for each in by_age if same_template(each["spec"]["template"], template)), None)
    return ReplicaSets(new, [each for each in by_age if new is None or uid_of(each) != uid_of(new)])


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
    return sum(_status(each).get(count) or 0 for each in replica_sets)


def total_terminating(replica_sets: Iterable[Json]) -> int | None:
    """Return the total of terminating pods; None if a replica set with observedGeneration does not report it."""
    known = [each for each in map(_status, replica_sets) if each.get("observedGeneration") or _TERMINATING in each]
    counts = [each.get(_TERMINATING) for each in known]
    return None if None in counts else sum(count for count in counts if count is not None)


def active(replica_sets: Iterable[Json]) -> list[Json]:
    return [each for each in replica_sets if size(each) > 0]


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

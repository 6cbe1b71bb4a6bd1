"""The replica sets of a deployment: which is new and which are old, how large they are, and in which order."""

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
    """Those of one deployment."""

    new: Json | None
    """The one with the deployment's own template."""
    old: list[Json] = field(default_factory=list)

    @property
    def all(self) -> list[Json]:
        return self.old if self.new is None else [*self.old, self.new]

    @property
    def active_old(self) -> list[Json]:
        return active(self.old)


def sorted_out(deployment: Json, replica_sets: Iterable[Json]) -> ReplicaSets:
    """The oldest of those with the deployment's template is the new one; there may be more after an upgrade."""
    by_age = sorted(replica_sets, key=age)
    template = deployment["spec"]["template"]
    new = next((each for each in by_age if same_template(each["spec"]["template"], template)), None)
    return ReplicaSets(new, [each for each in by_age if new is None or uid_of(each) != uid_of(new)])


def same_template(one: Json, other: Json) -> bool:
    """Whether the templates differ in their hash at most, which only a replica set's has."""
    return one.get("spec") == other.get("spec") and _meta_without_hash(one) == _meta_without_hash(other)


def _meta_without_hash(template: Json) -> Json:
    meta = {name: value for name, value in (template.get("metadata") or {}).items() if name != "labels"}
    return meta | {"labels": {key: value for key, value in labels_of(template).items() if key != POD_TEMPLATE_HASH}}


def size(obj: Json) -> int:
    """How many pods a deployment or a replica set wants."""
    return int(obj["spec"]["replicas"])


def available(replica_set: Json) -> int:
    return int(_status(replica_set).get("availableReplicas") or 0)


def total_size(replica_sets: Iterable[Json]) -> int:
    return sum(map(size, replica_sets))


def total(replica_sets: Iterable[Json], count: str) -> int:
    """The sum of a count that their statuses have."""
    return sum(_status(each).get(count) or 0 for each in replica_sets)


def total_terminating(replica_sets: Iterable[Json]) -> int | None:
    """None if one does not say it, though its controller has looked at it."""
    known = [each for each in map(_status, replica_sets) if each.get("observedGeneration") or _TERMINATING in each]
    counts = [each.get(_TERMINATING) for each in known]
    return None if None in counts else sum(count for count in counts if count is not None)


def active(replica_sets: Iterable[Json]) -> list[Json]:
    return [each for each in replica_sets if size(each) > 0]


def active_or_latest(sets: ReplicaSets) -> Json | None:
    """The set that alone wants pods, or the newest if none does; None if several do, or if there is none."""
    wanting = active(sets.all)
    if len(wanting) > 1 or not sets.all:
        return None
    return wanting[0] if wanting else sets.new or max(sets.old, key=age)


def age(replica_set: Json) -> Age:
    """Orders from old to new."""
    return (replica_set["metadata"].get("creationTimestamp") or "", name_of(replica_set))


def largest_first(replica_sets: Sequence[Json], *, newest_first: bool) -> list[Json]:
    """By size; among those of one size, by age."""
    by_age = sorted(replica_sets, key=age, reverse=newest_first)
    return sorted(by_age, key=lambda obj: -size(obj))


def _status(obj: Json) -> Json:
    return obj.get("status") or {}

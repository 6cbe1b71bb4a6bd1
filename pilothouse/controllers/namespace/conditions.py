"""The five conditions of a terminating namespace; False = no problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import UTC, datetime

from pilothouse.kinds.conditions import Condition, conditions_of, keep_transition, timed_condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json


@dataclass(frozen=True, slots=True)
class Verdict:
    """Reason and message of a condition."""

    reason: str
    message: str


DISCOVERY_FAILURE = "NamespaceDeletionDiscoveryFailure"
GROUP_VERSION_PARSING_FAILURE = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT_FAILURE = "NamespaceDeletionContentFailure"
CONTENT_REMAINING = "NamespaceContentRemaining"
FINALIZERS_REMAINING = "NamespaceFinalizersRemaining"

_WELL = {
    DISCOVERY_FAILURE: Verdict("ResourcesDiscovered", "All resources successfully discovered"),
    GROUP_VERSION_PARSING_FAILURE: Verdict("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT_FAILURE: Verdict("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    CONTENT_REMAINING: Verdict("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: Verdict("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Reason and message without a problem, by condition type, in output order."""


@dataclass(slots=True)
class Progress:
    """Results of one deletion attempt."""

    discovery_failure: Verdict | None = None
    errors: list[str] = field(default_factory=list)
    remaining: dict[GroupVersionResource, int] = field(default_factory=dict)
    finalizers: Counter[str] = field(default_factory=Counter)

    def verdicts(self) -> dict[str, Verdict | None]:
        """Return the verdict by condition type; None = no problem."""
        errors = ", ".join(sorted(self.errors))
        message = f"Failed to delete all resource types, {len(self.errors)} remaining: {errors}"
        return {
            DISCOVERY_FAILURE: self.discovery_failure,
            CONTENT_FAILURE: (Verdict("ContentDeletionFailed", message) if self.errors else None),
            CONTENT_REMAINING: self._content(),
            FINALIZERS_REMAINING: self._finalizers(),
        }

    def _content(self) -> Verdict | None:
        message = _joined(f"{gvr.resource}.{gvr.group} has {n} resource instances" for gvr, n in self.remaining.items())
        return Verdict("SomeResourcesRemain", f"Some resources are remaining: {message}") if message else None

    def _finalizers(self) -> Verdict | None:
        finalizers = _joined(f"{name} in {number} resource instances" for name, number in self.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {finalizers}"
        return Verdict("SomeFinalizersRemain", message) if finalizers else None


def discovery_failed(message: str, groups: int) -> Verdict:
    """Return the verdict for `groups` unreadable API groups; 0 = discovery failed entirely."""
    if groups:
        message = f"Discovery failed for some groups, {groups} failing: {message}"
    return Verdict("DiscoveryFailed", message)


def update_conditions(namespace: Json, verdicts: Mapping[str, Verdict | None], now: float) -> Json | None:
    """Return the namespace with updated conditions; None if unchanged."""
    old = {condition["type"]: condition for condition in conditions_of(namespace)}
    new = dict(old)
    for type_, well in _WELL.items():
        failure = verdicts.get(type_)
        verdict = failure or well
        condition = Condition(type_, "True" if failure else "False", verdict.reason, verdict.message)
        new[type_] = keep_transition(timed_condition(condition, datetime.fromtimestamp(now, UTC)), old.get(type_))
    if new == old:
        return None
    return {**namespace, "status": {**(namespace.get("status") or {}), "conditions": [*new.values()]}}


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(sorted(parts))

"""Classes of bugs: a class and a likely reason from the perturbation, the differing objects and the timeline of a run.

Several perturbations usually reveal one bug. `bugs` groups the failed runs of an exploration by the object and by the
shape of the difference; a group has the class of its strongest evidence, in the order of `BugClass`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from pilothouse.explore.model import (
    Entry,
    EntryKind,
    Finding,
    Oracle,
    Outcome,
    Perturbation,
    PerturbationKind,
    RunResult,
    Verdict,
)
from pilothouse.machinery.dataclass import dataclass


class BugClass(StrEnum):
    """Classes of bugs, strongest evidence first."""

    LIVELOCK = "livelock"
    """The operator writes without end."""
    NON_IDEMPOTENT_CREATE = "non-idempotent create"
    """A repeated create makes a second object."""
    LOST_UPDATE = "lost update"
    """A write overwrites a concurrent write."""
    STALENESS = "staleness"
    """The operator acts on an old state."""
    LEAK = "leak"
    """An object, a finalizer or a Secret remains."""
    FALSE_STATUS = "false status"
    """The status claims a state that is not so."""
    CRASH_CONSISTENCY = "crash consistency"
    """The operator does not finish work that was interrupted between two writes."""
    MISSED_EVENT = "missed event"
    """The operator acts on events instead of states."""
    INVALID_REQUEST = "invalid request"
    """The server rejects requests of the operator."""
    CRASH = "crash"
    """The operator ends unexpectedly."""
    OTHER = "other"
    """None of the known classes."""


@dataclass(frozen=True, slots=True)
class Classification:
    bug_class: BugClass
    reason: str
    """The likely reason, in one sentence."""


@dataclass(frozen=True, slots=True)
class Bug:
    """Failed runs with the same difference."""

    classification: Classification
    verdict: Verdict
    """The run with the strongest evidence."""
    others: tuple[Verdict, ...] = ()
    """Further runs that reveal the bug."""

    @property
    def finding(self) -> Finding:
        return primary_finding(self.verdict)


_KILLS: Final = frozenset({PerturbationKind.KILL_BEFORE, PerturbationKind.KILL_AFTER})
_OLD_STATES: Final = frozenset({PerturbationKind.STALE_READ, PerturbationKind.DELAY_EVENT})
_EVENTS: Final = frozenset(
    {
        PerturbationKind.DOWN_DURING_STEP,
        PerturbationKind.MERGE_EVENTS,
        PerturbationKind.DUPLICATE_EVENT,
        PerturbationKind.DROP_AND_RELIST,
        PerturbationKind.EXPIRE_WATCH,
        PerturbationKind.DELETE_OWNED,
        PerturbationKind.CHANGE_FIELD,
        PerturbationKind.ADVANCE_CLOCK,
    }
)
_ERRORS: Final = frozenset({PerturbationKind.FAIL, PerturbationKind.TIMEOUT})
_ORDER: Final = (
    Oracle.NOT_SETTLED,
    Oracle.LEAK,
    Oracle.FINAL_STATE,
    Oracle.RECREATED,
    Oracle.FALSE_STATUS,
    Oracle.INVARIANT,
    Oracle.CRASHED,
    Oracle.REJECTED,
    Oracle.DENIED,
)


def bugs(outcome: Outcome) -> list[Bug]:
    """Group the failed runs, strongest evidence first. An undisturbed run with findings comes before all others."""
    groups: dict[tuple[str, ...], list[tuple[Classification, Verdict]]] = {}
    for verdict in (outcome.baseline, *outcome.verdicts):
        if not verdict.passed:
            found = (classify(verdict, outcome.baseline.result), verdict)
            groups.setdefault(_signature(verdict), []).append(found)
    found_bugs = []
    for runs in groups.values():
        runs.sort(key=lambda run: _rank(run[0].bug_class))  # stable: the plan's order within a class
        (classification, verdict), *others = runs
        found_bugs.append(Bug(classification, verdict, tuple(other for _, other in others)))
    return sorted(found_bugs, key=lambda bug: (bool(bug.verdict.perturbations), _rank(bug.classification.bug_class)))


def classify(verdict: Verdict, baseline: RunResult) -> Classification:
    """Return the class and the likely reason of a failed run. Raises ValueError for a run that passed."""
    finding = primary_finding(verdict)
    bug_class = _class_of(verdict, baseline, finding)
    return Classification(bug_class, _reason(bug_class, verdict, finding))


def primary_finding(verdict: Verdict) -> Finding:
    """Return the finding that describes the run best. Raises ValueError for a run that passed."""
    if verdict.passed:
        raise ValueError("the run has no findings")
    return min(verdict.findings, key=lambda finding: (_ORDER.index(finding.oracle), bool(finding.path)))


def is_extra(finding: Finding) -> bool:
    """Whether an object exists that the undisturbed run did not leave."""
    return finding.oracle in (Oracle.FINAL_STATE, Oracle.LEAK) and not finding.path and finding.expected is None


def is_missing(finding: Finding) -> bool:
    """Whether an object of the undisturbed run does not exist."""
    return finding.oracle == Oracle.FINAL_STATE and not finding.path and finding.actual is None


def _class_of(verdict: Verdict, baseline: RunResult, finding: Finding) -> BugClass:
    oracles = {one.oracle for one in verdict.findings}
    kinds = {perturbation.kind for perturbation in verdict.perturbations}
    differs = bool(oracles & {Oracle.FINAL_STATE, Oracle.LEAK, Oracle.RECREATED, Oracle.INVARIANT})
    if Oracle.NOT_SETTLED in oracles and not verdict.result.failed_wait:
        return BugClass.LIVELOCK
    if any(map(is_extra, verdict.findings)) and _has_repeated_create(verdict.result, baseline):
        return BugClass.NON_IDEMPOTENT_CREATE
    if PerturbationKind.CONCURRENT_WRITE in kinds or (differs and _overwrites(verdict, kinds)):
        return BugClass.LOST_UPDATE
    if differs and (kinds & _OLD_STATES or PerturbationKind.TWO_INSTANCES in kinds):
        return BugClass.STALENESS
    if Oracle.LEAK in oracles or any(map(is_extra, verdict.findings)):
        return BugClass.LEAK
    if Oracle.FALSE_STATUS in oracles or (kinds & _ERRORS and _ignores_error(verdict)):
        return BugClass.FALSE_STATUS
    if differs and kinds & _EVENTS:
        return BugClass.MISSED_EVENT
    if differs and kinds:
        return BugClass.CRASH_CONSISTENCY
    if oracles & {Oracle.DENIED, Oracle.REJECTED}:
        return BugClass.INVALID_REQUEST
    if Oracle.CRASHED in oracles:
        return BugClass.CRASH
    return BugClass.CRASH_CONSISTENCY if kinds & (_KILLS | _ERRORS) else BugClass.OTHER


def _writes(result: RunResult) -> Iterator[Entry]:
    verbs = ("create", "update", "patch", "delete")
    return (entry for entry in result.timeline if entry.kind == EntryKind.REQUEST and entry.verb in verbs)


def _has_repeated_create(result: RunResult, baseline: RunResult) -> bool:
    """Whether more creates of one resource were committed than in the undisturbed run."""
    counts, usual = (
        Counter((entry.group, entry.resource, entry.namespace) for entry in _writes(run) if _is_committed_create(entry))
        for run in (result, baseline)
    )
    return any(count > usual[place] for place, count in counts.items())


def _is_committed_create(entry: Entry) -> bool:
    return entry.verb == "create" and not entry.subresource and entry.revision > 0


def _overwrites(verdict: Verdict, kinds: set[PerturbationKind]) -> bool:
    """Whether a differing object was replaced without its resourceVersion, by an operator that could see old states."""
    if not kinds & (_OLD_STATES | {PerturbationKind.TWO_INSTANCES}):
        return False
    names = {finding.object.rpartition(" ")[2] for finding in verdict.findings}
    return any(
        entry.verb == "update"
        and f"{entry.namespace}/{entry.name}".lstrip("/") in names
        and isinstance(entry.body, dict)
        and not (entry.body.get("metadata") or {}).get("resourceVersion")
        for entry in _writes(verdict.result)
    )


def _ignores_error(verdict: Verdict) -> bool:
    """Whether a write failed by the explorer was not repeated, and the operator wrote a status after the failure."""
    failed = next((entry for entry in _writes(verdict.result) if entry.disturbed), None)
    if failed is None:
        return False
    later = [entry for entry in _writes(verdict.result) if entry.number > failed.number]
    is_repeated = any(_same_target(entry, failed) for entry in later)
    return not is_repeated and any(entry.subresource == "status" and entry.revision for entry in later)


def _same_target(one: Entry, other: Entry) -> bool:
    def target(entry: Entry) -> tuple[str, ...]:
        return (entry.group, entry.resource, entry.subresource, entry.namespace, entry.name)

    return target(one) == target(other)


def _rank(bug_class: BugClass) -> int:
    return [*BugClass].index(bug_class)


def _signature(verdict: Verdict) -> tuple[str, ...]:
    """Return the key of a group: the object and the shape of the difference."""
    finding = primary_finding(verdict)
    if finding.oracle == Oracle.NOT_SETTLED:
        return (finding.oracle.value,)
    shape = "extra" if is_extra(finding) else "missing" if is_missing(finding) else finding.oracle.value
    return (shape, finding.object, finding.name)


_REASONS: Final = {
    BugClass.LIVELOCK: "The operator reacts to its own writes: a reconcile without changes writes again{tail}.",
    BugClass.NON_IDEMPOTENT_CREATE: (
        "The operator repeats {point} after {what} and cannot find the first object: the name is generated, "
        "and nothing else identifies the object."
    ),
    BugClass.LOST_UPDATE: (
        "The operator replaces an object that it read before without the resourceVersion of the read, "
        "so the server cannot refuse the write{object}."
    ),
    BugClass.STALENESS: (
        "The operator trusts its cache for a decision that cannot be undone{object}, but a cache can be old: {what}."
    ),
    BugClass.LEAK: (
        "The clean-up depends on an event or on memory that is gone after {what}, not on a finalizer or an owner "
        "reference{object}."
    ),
    BugClass.FALSE_STATUS: "The operator discards the error of {point} and reports success{object}.",
    BugClass.CRASH_CONSISTENCY: (
        "A reconcile takes the result of an earlier write as proof that all writes were made. After {what}, the "
        "remaining writes are never made{object}."
    ),
    BugClass.MISSED_EVENT: (
        "The operator acts on certain events, not on the current state. After {what}, {verb}{object}."
    ),
    BugClass.INVALID_REQUEST: "The server rejects a request of the operator: {message}",
    BugClass.CRASH: "The operator does not handle {what} and ends.",
    BugClass.OTHER: "The final state differs: {message}",
}


def _reason(bug_class: BugClass, verdict: Verdict, finding: Finding) -> str:
    first = verdict.perturbations[0] if verdict.perturbations else None
    tail = sorted({f"{entry.verb} {entry.resource}" for entry in _tail(verdict.result)})
    point = f"`{first.point}`" if first is not None and first.point is not None else "a write"
    return _REASONS[bug_class].format(
        tail=f" ({', '.join(tail)})" if tail else "",
        what=" and ".join(map(describe, verdict.perturbations)) or "no disturbance",
        object=f" ({finding.object})" if finding.object else "",
        message=finding.message.rstrip(".") + ".",
        verb="nothing restores the object" if is_missing(finding) or finding.path else "the state differs",
        point=point,
    )


def _tail(result: RunResult) -> Iterator[Entry]:
    numbers = set(result.tail)
    return (entry for entry in result.timeline if entry.number in numbers)


_TEXTS: Final = {
    PerturbationKind.KILL_BEFORE: "a crash just before {point}",
    PerturbationKind.KILL_AFTER: "a crash just after {point}",
    PerturbationKind.DOWN_DURING_STEP: "a downtime of the operator during step {step}",
    PerturbationKind.FAIL: "the error {code} for {point}",
    PerturbationKind.TIMEOUT: "a timeout of {point}",
    PerturbationKind.LOSE_RESPONSE: "the lost response to {point}",
    PerturbationKind.STALE_READ: "a restart with a list of {target} that lacks the last {back} changes",
    PerturbationKind.DELAY_EVENT: "a delay of the event {point}",
    PerturbationKind.MERGE_EVENTS: "a merge of the event {point} with later events",
    PerturbationKind.DUPLICATE_EVENT: "a duplicate of the event {point}",
    PerturbationKind.DROP_AND_RELIST: "a relist instead of the event {point}",
    PerturbationKind.EXPIRE_WATCH: "the error 410 instead of the event {point}",
    PerturbationKind.TWO_INSTANCES: "a second instance that took over at {point}",
    PerturbationKind.DELETE_OWNED: "the deletion of {target} by another client after step {step}",
    PerturbationKind.CHANGE_FIELD: "the change of {path} of {target} by another client after step {step}",
    PerturbationKind.ADVANCE_CLOCK: "{seconds:g} s without events after step {step}",
    PerturbationKind.CONCURRENT_WRITE: "a write of another client just before {point}",
}


def describe(perturbation: Perturbation) -> str:
    """Return the perturbation as a noun phrase.

    >>> from pilothouse.explore.model import Perturbation, PerturbationKind, Point
    >>> describe(Perturbation(PerturbationKind.KILL_AFTER, Point("create", "secrets", namespace="default")))
    'a crash just after `create secrets default`'
    """
    target = perturbation.target
    return _TEXTS[perturbation.kind].format(
        point=f"`{perturbation.point}`",
        step=perturbation.step + 1,
        code=perturbation.code,
        target="" if target is None else str(target) if target.name else target.resource,
        path=perturbation.path,
        back=perturbation.back,
        seconds=perturbation.seconds,
    )

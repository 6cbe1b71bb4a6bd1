"""Data of an exploration: perturbations, the timeline of a run, its result, and the findings of the oracles.

Every type has a JSON form: `to_json` and `from_json` of this module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

EVENT: Final = "event"
"""Verb of a Point that selects a watch event instead of a request."""


class PerturbationKind(StrEnum):
    """Kinds of perturbations, in the spelling of explore.yaml."""

    KILL_BEFORE = "KillBefore"
    """Kill the operator while a write is on its way; the write is lost. Restart at once."""
    KILL_AFTER = "KillAfter"
    """Kill the operator after a write was committed and before its response. Restart at once."""
    DOWN_DURING_STEP = "DownDuringStep"
    """Kill the operator before a step, perform the step, restart: changes are missed while the operator is down."""
    FAIL = "Fail"
    """Answer a write with an error (`code` 409, 429 or 500) without committing the write."""
    TIMEOUT = "Timeout"
    """Answer a write with 504 without committing the write."""
    LOSE_RESPONSE = "LoseResponse"
    """Commit a write and cut the connection before the response."""
    STALE_READ = "StaleRead"
    """Restart the operator, and serve its cached lists and gets of one resource, and the watch after them, from
    `revision` until the operator is idle: a lagging API server."""
    DELAY_EVENT = "DelayEvent"
    """Hold a watch event, and all later events of the watch, until the operator is idle."""
    MERGE_EVENTS = "MergeEvents"
    """Hold a watch event over the next step; then deliver only the latest event of each object."""
    DUPLICATE_EVENT = "DuplicateEvent"
    """Send a watch event twice."""
    DROP_AND_RELIST = "DropAndRelist"
    """Drop a watch event and all later events over the next step; then end the watch with 410: the operator relists."""
    EXPIRE_WATCH = "ExpireWatch"
    """End a watch with 410 instead of an event: the operator relists."""
    TWO_INSTANCES = "TwoInstances"
    """Freeze the operator at a write, let a second instance take over, then let the frozen instance go on."""
    CONCURRENT_WRITE = "ConcurrentWrite"
    """Let another client annotate an object just before the operator replaces or patches the object. The annotation
    must survive."""
    DELETE_OWNED = "DeleteOwned"
    """Delete an object that the operator created, after a step."""
    CHANGE_FIELD = "ChangeField"
    """Change a field that the operator wrote, after a step."""
    ADVANCE_CLOCK = "AdvanceClock"
    """Advance the clock over a deadline, after a step."""


@dataclass(frozen=True, slots=True)
class Point:
    """The n-th matching request of the operator, or the n-th matching watch event, since the start of the run.

    Requests match by content, never by time; requests of all instances count.
    """

    verb: str
    """Verb as in RBAC; `event` selects a watch event."""
    resource: str
    """Plural resource."""
    group: str = ""
    """API group; empty for the core group."""
    subresource: str = ""
    namespace: str = ""
    """Namespace; empty for cluster-scoped requests and for all namespaces."""
    name: str = ""
    """Object name; a trailing * stands for a generated suffix; empty for requests without a name."""
    event: str = ""
    """Type of the watch event: ADDED, MODIFIED or DELETED; empty for requests."""
    occurrence: int = 1
    """1 selects the first matching request or event."""

    def __str__(self) -> str:
        resource = self.resource + (f"/{self.subresource}" if self.subresource else "")
        place = "/".join(part for part in (self.namespace, self.name) if part)
        verb = self.event if self.verb == EVENT else self.verb
        nth = f" (number {self.occurrence})" if self.occurrence > 1 else ""
        return f"{verb} {resource}{' ' + place if place else ''}{nth}"


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object. `str()` is the key of `RunResult.final`: `Kind.group namespace/name`."""

    kind: str
    name: str
    namespace: str = ""
    group: str = ""
    version: str = "v1"
    resource: str = ""
    """Plural resource."""

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


def key_of(obj: Json) -> str:
    """Return `Kind.group namespace/name`, as `str(ObjectRef)`."""
    meta = obj.get("metadata") or {}
    group = str(obj.get("apiVersion") or "").rpartition("/")[0]
    kind = f"{obj['kind']}.{group}" if group else obj["kind"]
    return f"{kind} {meta['namespace']}/{meta['name']}" if meta.get("namespace") else f"{kind} {meta.get('name')}"


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One disturbance of a run."""

    kind: PerturbationKind
    point: Point | None = None
    """Request or event of the disturbance. None for DownDuringStep, StaleRead, DeleteOwned, ChangeField and
    AdvanceClock, which happen at a step."""
    step: int = -1
    """Index of the step of the scenario: the disturbance happens after the step has settled (DownDuringStep: before
    the step). -1: not bound to a step."""
    code: int = 0
    """HTTP status of Fail."""
    target: ObjectRef | None = None
    """Object of DeleteOwned and ChangeField. StaleRead: only `group` and `resource` are set."""
    path: str = ""
    """ChangeField: JSON pointer of the field."""
    value: Any = None
    """ChangeField: the new value."""
    back: int = 0
    """StaleRead: number of changes of the resource that the served state lacks."""
    seconds: float = 0.0
    """AdvanceClock: virtual seconds to advance."""
    reason: str = ""
    """Why the planner chose the perturbation."""
    score: int = 0
    """Likelihood to find a bug; the plan runs higher scores first. Not part of the identity."""

    @property
    def id(self) -> str:
        """Stable identity within a scenario, for resume and reports."""
        words: list[str] = [self.kind.value]
        if self.code:
            words.append(str(self.code))
        if self.target is not None:
            words.append(str(self.target) if self.target.name else self.target.resource)
        words += [text for text in (self.path, f"back {self.back}" if self.back else "") if text]
        if self.seconds:
            words.append(f"{self.seconds:g}s")
        if self.point is not None:
            words.append(str(self.point))
        if self.step >= 0:
            words.append(f"step {self.step + 1}")
        return " ".join(words)


class EntryKind(StrEnum):
    """Kinds of timeline entries."""

    STEP = "Step"
    """The scenario performed a step."""
    REQUEST = "Request"
    """The operator sent a request."""
    EVENT = "Event"
    """The operator received a watch event."""
    ACTION = "Action"
    """The explorer disturbed the run: kill, restart, hold, release, delete, clock."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the timeline, in order of `number`."""

    number: int
    kind: EntryKind
    actor: str = ""
    """User of the request, `user` for steps, `explorer` for actions."""
    verb: str = ""
    """Verb as in RBAC, or the type of the watch event."""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    """Object name; for a create with generateName the final name, if the create succeeded."""
    code: int = 0
    """HTTP status of the response; 0: no response was sent (cut, killed)."""
    before: int = 0
    """Revision of the store when the request arrived."""
    revision: int = 0
    """Write: revision of the written object; 0 = nothing changed. Read: revision of the served state. Event: revision
    of the object."""
    body: Any = None
    """Body of a write, if JSON; status message of a refused request; the object of a watch event is in
    `RunResult.changes`."""
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Query parameters of the request (resourceVersion, fieldManager …)."""
    causes: tuple[int, ...] = ()
    """Write: numbers of the earlier reads and events since the operator was last idle that can have caused the
    write."""
    step: int = -1
    """Index of the last performed step; -1 before the first step."""
    time: float = 0.0
    """Virtual seconds since the start of the run."""
    disturbed: bool = False
    """Whether a perturbation hit this request or event."""
    message: str = ""
    """Text of steps and actions, in a sentence."""


@dataclass(frozen=True, slots=True)
class Change:
    """One revision of the store."""

    revision: int
    key: str
    """Storage key, such as /registry/configmaps/default/web."""
    object: Json | None
    """The new object; None: deleted."""
    previous: Json | None = None
    """The object before; None: created."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run: timeline, changes and final state."""

    perturbations: tuple[Perturbation, ...] = ()
    timeline: tuple[Entry, ...] = ()
    changes: tuple[Change, ...] = ()
    """Every change of the store between the snapshot and the end, by revision, without ignored kinds."""
    final: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    """Final objects by `str(ObjectRef)`, raw."""
    settled: bool = True
    busy: tuple[str, ...] = ()
    """Why the run did not settle: busy components, or the writes that go on."""
    tail: tuple[int, ...] = ()
    """Numbers of the timeline entries (writes) in the last window of a run that did not settle."""
    missed: tuple[str, ...] = ()
    """Ids of perturbations whose point was never reached."""
    failed_wait: str = ""
    """The `wait` step that did not come true, with the reason; empty if all did."""
    crashes: tuple[str, ...] = ()
    """Unexpected ends of the operator: exit code or exception."""
    output: str = ""
    """The last lines of the operator's output."""
    seconds: float = 0.0
    """Real duration."""
    virtual_seconds: float = 0.0
    steps: tuple[int, ...] = ()
    """Indices of the performed steps; all steps unless shrunk."""


class Oracle(StrEnum):
    """Rules that a perturbed run must keep."""

    FINAL_STATE = "FinalState"
    """The final state equals the undisturbed final state, up to noise."""
    INVARIANT = "Invariant"
    """An invariant of the scenario does not hold."""
    NOT_SETTLED = "NotSettled"
    """The operator writes without end, or a wait of the scenario did not come true."""
    LEAK = "Leak"
    """Objects, finalizers or Secrets remain that the undisturbed run did not leave."""
    RECREATED = "Recreated"
    """An object was deleted and created again, and the undisturbed run did not do that."""
    FALSE_STATUS = "FalseStatus"
    """A status claims a state that is not so, such as observedGeneration of a spec that was not carried out."""
    DENIED = "Denied"
    """RBAC denied a request of the operator."""
    REJECTED = "Rejected"
    """Validation or admission rejected a request of the operator."""
    CRASHED = "Crashed"
    """The operator ended unexpectedly."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One violated oracle."""

    oracle: Oracle
    message: str
    """One sentence: the object, the problem."""
    object: str = ""
    """`str(ObjectRef)`, normalized; empty if no object is concerned."""
    path: str = ""
    """JSON pointer of the differing field."""
    expected: Any = None
    actual: Any = None
    revision: int = 0
    """Revision at which the rule was violated first; 0: at the end."""
    name: str = ""
    """Name of the violated invariant."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one run. No findings: the run passed."""

    result: RunResult
    findings: tuple[Finding, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def perturbations(self) -> tuple[Perturbation, ...]:
        return self.result.perturbations


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an exploration."""

    scenario: str
    """Name of the scenario."""
    baseline: Verdict
    """The undisturbed run. Its findings concern the operator without any perturbation."""
    verdicts: tuple[Verdict, ...] = ()
    """All perturbed runs in the order of the plan."""
    planned: int = 0
    skipped: int = 0
    """Perturbations that cannot change the outcome."""
    left: int = 0
    """Perturbations that the budget did not allow."""
    noise: tuple[str, ...] = ()
    """Learned noise: `Kind.group /json/pointer`."""
    seed: int = 0
    seconds: float = 0.0

    @property
    def failures(self) -> list[Verdict]:
        """Runs with findings."""
        return [verdict for verdict in self.verdicts if not verdict.passed]


T = TypeVar("T")

_NESTED: Final[Mapping[str, type]] = {"point": Point, "target": ObjectRef, "result": RunResult, "baseline": Verdict}
_SEQUENCES: Final[Mapping[str, type]] = {
    "perturbations": Perturbation,
    "timeline": Entry,
    "changes": Change,
    "findings": Finding,
    "verdicts": Verdict,
}
_ENUMS: Final[Mapping[tuple[type, str], type[StrEnum]]] = {
    (Perturbation, "kind"): PerturbationKind,
    (Entry, "kind"): EntryKind,
    (Finding, "oracle"): Oracle,
}


def to_json(value: Any) -> Any:
    """Return the JSON form of a type of this module; fields with their default value are left out."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {
            field.name: to_json(part) for field in fields if (part := getattr(value, field.name)) != _default(field)
        }
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [to_json(part) for part in value]
    if isinstance(value, Mapping):
        return {key: to_json(part) for key, part in value.items()}
    return value


def from_json(of: type[T], data: Json) -> T:
    """Return the value of a JSON form. Raises TypeError for unknown fields, ValueError for unknown kinds."""
    return of(**{name: _field_value(of, name, value) for name, value in data.items()})


def _field_value(of: type, name: str, value: Any) -> Any:
    if (enum := _ENUMS.get((of, name))) is not None:
        return enum(value)
    if name in _NESTED and isinstance(value, dict):
        return from_json(_NESTED[name], value)
    if name in _SEQUENCES and isinstance(value, list):
        return tuple(from_json(_SEQUENCES[name], part) for part in value)
    return tuple(value) if isinstance(value, list) and name not in ("value", "expected", "actual", "body") else value


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else dataclasses.MISSING

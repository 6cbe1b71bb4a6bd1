"""The plan: perturbations that can change the outcome of the recorded run, likely bugs first.

Left out: writes of Leases and Events, writes without effect, a kill before a write that directly follows another write
(equal to the kill after the other write), events that precede no write, and stale reads of resources that the operator
never reads from a cache.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from pilothouse.explore.model import (
    Entry,
    EntryKind,
    ObjectRef,
    Perturbation,
    PerturbationKind,
    RunResult,
    key_of,
)
from pilothouse.explore.recording import Learned
from pilothouse.explore.run import PERIODIC, generated_names, point_of
from pilothouse.explore.scenario import Scenario
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_READS: Final = frozenset({"get", "list", "watch", "head", "options"})
_SCORES: Final[Mapping[PerturbationKind, int]] = {
    PerturbationKind.KILL_AFTER: 100,
    PerturbationKind.LOSE_RESPONSE: 95,
    PerturbationKind.DOWN_DURING_STEP: 90,
    PerturbationKind.STALE_READ: 85,
    PerturbationKind.DROP_AND_RELIST: 80,
    PerturbationKind.MERGE_EVENTS: 75,
    PerturbationKind.FAIL: 70,
    PerturbationKind.KILL_BEFORE: 65,
    PerturbationKind.TWO_INSTANCES: 60,
    PerturbationKind.CONCURRENT_WRITE: 58,
    PerturbationKind.DELETE_OWNED: 55,
    PerturbationKind.DELAY_EVENT: 50,
    PerturbationKind.CHANGE_FIELD: 45,
    PerturbationKind.EXPIRE_WATCH: 40,
    PerturbationKind.ADVANCE_CLOCK: 35,
    PerturbationKind.TIMEOUT: 30,
    PerturbationKind.DUPLICATE_EVENT: 20,
}
_MOST_PAST: Final = 3
_ADVANCES: Final = (3600.0,)


@dataclass(frozen=True, slots=True)
class Plan:
    """Perturbations in the order of their runs."""

    perturbations: tuple[Perturbation, ...]
    skipped: int
    """Candidates that cannot change the outcome."""


class _Planner:
    def __init__(self, scenario: Scenario, learned: Learned) -> None:
        self.scenario, self.baseline = scenario, learned.baseline
        baseline = learned.baseline
        self.timeline = baseline.timeline
        self.patterns = {**_random_names(learned), **generated_names(baseline.changes)}
        self.skipped = 0
        self.steps = baseline.steps

    def candidates(self) -> Iterator[Perturbation]:
        yield from self._writes()
        yield from self._events()
        yield from self._at_steps()
        yield from self._owned()
        yield from self._deadlines()

    def _writes(self) -> Iterator[Perturbation]:
        kind, burst, seen = PerturbationKind, -1, set()
        for entry in self.timeline:
            if entry.kind is EntryKind.STEP:
                burst = -1
            if entry.kind is not EntryKind.REQUEST or entry.verb in _READS:
                continue
            if entry.resource in PERIODIC or entry.subresource in ("token", "eviction"):
                self.skipped += 1
                continue
            point, effective = (
                point_of(entry, self.timeline, self.patterns),
                entry.revision > 0 and 0 < entry.code < 400,
            )
            first_cause = entry.causes[0] if entry.causes else entry.number
            is_first, burst = first_cause != burst, first_cause
            if is_first:
                yield Perturbation(kind.KILL_BEFORE, point, reason="crash before the first write")
            else:
                self.skipped += 1
            if not effective:
                self.skipped += 4
                continue
            yield Perturbation(kind.KILL_AFTER, point, reason="crash between two writes")
            if (entry.verb, entry.resource, entry.subresource) not in seen:
                seen.add((entry.verb, entry.resource, entry.subresource))
                yield Perturbation(kind.TWO_INSTANCES, point, reason="write of a former leader")
            yield Perturbation(kind.LOSE_RESPONSE, point, reason="committed write without a response")
            is_apply = entry.verb == "patch" and "force" in entry.options
            if entry.verb in ("update", "patch") and not is_apply:
                yield Perturbation(kind.FAIL, point, code=409, reason="concurrent change")
                yield Perturbation(kind.CONCURRENT_WRITE, point, reason="lost update")
            yield Perturbation(kind.FAIL, point, code=500, reason="server error")
            yield Perturbation(kind.FAIL, point, code=429, reason="overloaded server", score=-50)
            yield Perturbation(kind.TIMEOUT, point, reason="timeout")

    def _events(self) -> Iterator[Perturbation]:
        kind, seen = PerturbationKind, set()
        causes = {number for entry in self.timeline for number in entry.causes if entry.resource not in PERIODIC}
        last_step = max((entry.step for entry in self.timeline), default=-1)
        for entry in self.timeline:
            if entry.kind is not EntryKind.EVENT or entry.resource in PERIODIC:
                continue
            if entry.number not in causes:
                self.skipped += 1
                continue
            point = point_of(entry, self.timeline, self.patterns)
            place = (entry.resource, entry.namespace, point.name, entry.verb, entry.step)
            if place in seen:
                self.skipped += 1
                continue
            seen.add(place)
            if entry.step < last_step:
                yield Perturbation(kind.DROP_AND_RELIST, point, reason="missed event")
                yield Perturbation(kind.MERGE_EVENTS, point, reason="merged events")
            yield Perturbation(kind.DELAY_EVENT, point, reason="stale cache")
            yield Perturbation(kind.EXPIRE_WATCH, point, reason="relist")
            yield Perturbation(kind.DUPLICATE_EVENT, point, reason="repeated event")

    def _at_steps(self) -> Iterator[Perturbation]:
        kind = PerturbationKind
        cached = {
            (entry.group, entry.resource)
            for entry in self.timeline
            if entry.verb == "list" and entry.options.get("resourceVersion") == "0"
        }
        kinds = self._kinds_of_resources()
        for index in self.steps:
            step = self.scenario.steps[index]
            if step.wait is None and not step.advance:
                yield Perturbation(kind.DOWN_DURING_STEP, step=index, reason="change while the operator is down")
            for group, resource in sorted(cached):
                if (group, resource) not in kinds:
                    self.skipped += 1
                    continue
                target = ObjectRef(kinds[group, resource], "", group=group, resource=resource)
                changes = self._changes_until(index, target)
                for back in range(1, min(changes, _MOST_PAST) + 1):
                    yield Perturbation(kind.STALE_READ, step=index, target=target, back=back, reason="lagging server")

    def _owned(self) -> Iterator[Perturbation]:
        """Yield deletions and changes of objects that the operator created, after the step of their creation."""
        kind, seen = PerturbationKind, set()
        for entry in self.timeline:
            if entry.kind is not EntryKind.REQUEST or entry.code != 201 or entry.subresource:
                continue
            created = next((one for one in self.baseline.changes if one.revision == entry.revision), None)
            if created is None or created.object is None or entry.resource in PERIODIC or entry.step < 0:
                continue
            obj = created.object
            key = key_of(obj)
            if key in seen or (obj["metadata"].get("generateName")):
                self.skipped += 1
                continue
            seen.add(key)
            if any(one.object is None and one.key == created.key for one in self._changes_in(entry.step)):
                self.skipped += 1
                continue
            target = _reference(obj, entry)
            yield Perturbation(kind.DELETE_OWNED, step=entry.step, target=target, reason="deleted by hand")
            if (leaf := _leaf(entry.body)) is not None:
                path, value = leaf
                yield Perturbation(
                    kind.CHANGE_FIELD, step=entry.step, target=target, path=path, value=value, reason="changed by hand"
                )

    def _deadlines(self) -> Iterator[Perturbation]:
        """Yield an advance of the clock over each time in an object, and over an hour, after each step."""
        start = _first_time(self.baseline)
        later = sorted(
            {
                round(moment - start)
                for obj in self.baseline.final.values()
                for part in ("spec", "status")
                for moment in _times(obj.get(part))
                if start and moment > start + 60
            }
        )
        for index in self.steps[:-1]:
            for seconds in (*later[:3], *_ADVANCES):
                yield Perturbation(
                    PerturbationKind.ADVANCE_CLOCK, step=index, seconds=float(seconds + 1), reason="passed deadline"
                )

    def _kinds_of_resources(self) -> dict[tuple[str, str], str]:
        """Return (group, resource) -> kind of the changed objects."""
        found: dict[tuple[str, str], str] = {}
        for entry in self.timeline:
            if entry.kind is EntryKind.EVENT or entry.revision:
                for change in self.baseline.changes:
                    if change.revision == entry.revision and (obj := change.object or change.previous):
                        found[entry.group, entry.resource] = obj["kind"]
        return found

    def _changes_until(self, step: int, target: ObjectRef) -> int:
        last = max((e.revision for e in self.timeline if e.step <= step), default=0)
        kind = f"{target.kind}.{target.group}" if target.group else target.kind
        return sum(
            1
            for change in self.baseline.changes
            if change.revision <= last
            and key_of(change.object or change.previous or {"kind": ""}).startswith(f"{kind} ")
        )

    def _changes_in(self, step: int) -> list[Any]:
        revisions = [entry.revision for entry in self.timeline if entry.step == step and entry.revision]
        if not revisions:
            return []
        return [one for one in self.baseline.changes if min(revisions) <= one.revision <= max(revisions)]


def plan(scenario: Scenario, learned: Learned) -> Plan:
    """Return the perturbations of a scenario in the order of their runs: one of each kind in turn."""
    if not learned.baseline.settled:
        return Plan((), 0)  # the undisturbed run is the finding
    planner = _Planner(scenario, learned)
    candidates = [one for one in planner.candidates() if one.kind in scenario.kinds]
    shuffled = random.Random(scenario.seed)
    by_kind: dict[str, list[Perturbation]] = {}
    for one in candidates:
        by_kind.setdefault(f"{one.kind} {one.code or ''}", []).append(one)
    ordered: list[tuple[int, int, float, Perturbation]] = []
    seen: set[str] = set()
    for group in by_kind.values():
        rank = 0
        for one in group:
            if one.id in seen:
                continue
            seen.add(one.id)
            ordered.append((rank, -(_SCORES[one.kind] + one.score), shuffled.random(), one))
            rank += 1
    ordered.sort(key=lambda item: item[:3])
    return Plan(tuple(item[3] for item in ordered), planner.skipped)


def _random_names(learned: Learned) -> dict[str, str]:
    """Return name -> pattern of the objects whose names vary between undisturbed runs."""
    keys = {key_of(change.object) for change in learned.baseline.changes if change.object is not None}
    return {
        key.rpartition("/")[2].rpartition(" ")[2]: f"{prefix.rpartition('/')[2].rpartition(' ')[2]}*"
        for key in keys
        for prefix in learned.noise.prefixes
        if key.startswith(prefix)
    }


def _reference(obj: Json, entry: Entry) -> ObjectRef:
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    meta = obj["metadata"]
    return ObjectRef(obj["kind"], meta["name"], meta.get("namespace") or "", group, version, entry.resource)


def _leaf(body: Any) -> tuple[str, Any] | None:
    """Return the JSON pointer of a field that the operator wrote, with another value."""
    for part in ("data", "spec", "stringData"):
        if isinstance(body, dict) and isinstance(body.get(part), dict) and part != "stringData":
            for path, value in _leaves(body[part], f"/{part}"):
                return path, value
    return None


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, part in sorted(value.items()):
        inner = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
        if isinstance(part, bool):
            yield inner, not part
        elif isinstance(part, int):
            yield inner, part + 1
        elif isinstance(part, str) and name not in ("name", "namespace", "kind", "apiVersion", "type"):
            yield inner, f"{part}-changed"
        elif isinstance(part, dict):
            yield from _leaves(part, inner)


_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def _times(value: Any) -> Iterator[float]:
    if isinstance(value, str) and _TIME.fullmatch(value):
        yield datetime.fromisoformat(value).timestamp()
    elif isinstance(value, dict):
        for part in value.values():
            yield from _times(part)
    elif isinstance(value, list):
        for part in value:
            yield from _times(part)


def _first_time(result: RunResult) -> float:
    for change in result.changes:
        if change.object is not None and (made := (change.object.get("metadata") or {}).get("creationTimestamp")):
            return datetime.fromisoformat(made).timestamp()
    return 0.0

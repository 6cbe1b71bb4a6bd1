"""Oracles: rules that a perturbed run must keep, compared with the undisturbed run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pilothouse.explore.cluster import compile_cel, is_true, python_invariant
from pilothouse.explore.model import (
    Change,
    Entry,
    EntryKind,
    Finding,
    Oracle,
    PerturbationKind,
    RunResult,
    Verdict,
    key_of,
)
from pilothouse.explore.recording import Difference, Learned, differences, normalize, touched
from pilothouse.explore.run import CONCURRENT
from pilothouse.explore.scenario import Invariant, Scenario
from pilothouse.machinery.objects import Json

_READY_CONDITIONS: Final = frozenset({"Ready", "Available", "Complete", "Succeeded"})


def judge(scenario: Scenario, learned: Learned, result: RunResult) -> Verdict:
    """Judge a perturbed run. A run whose perturbations all missed their point passes."""
    if result.perturbations and len(result.missed) == len(result.perturbations):
        return Verdict(result)
    findings = [
        *_settling(learned.baseline, result),
        *_final_state(scenario, learned, result),
        *_recreated(learned.baseline, result),
        *violations(scenario, result),
        *_refusals(learned.baseline.timeline, result),
    ]
    known = {(one.oracle, one.name, one.object) for one in violations(scenario, learned.baseline)}
    return Verdict(result, tuple(one for one in findings if (one.oracle, one.name, one.object) not in known))


def judge_baseline(scenario: Scenario, result: RunResult) -> Verdict:
    """Judge an undisturbed run: invariants, settling, denied and rejected requests."""
    empty = RunResult()
    findings = [*_settling(empty, result), *violations(scenario, result), *_refusals((), result)]
    return Verdict(result, tuple(findings))


def _settling(baseline: RunResult, result: RunResult) -> Iterator[Finding]:
    if not result.settled and baseline.settled:
        crashed = any("crashed" in reason for reason in result.busy)
        oracle = Oracle.CRASHED if crashed else Oracle.NOT_SETTLED
        yield Finding(oracle, f"the operator does not settle: {', '.join(result.busy)}")
    if result.failed_wait and not baseline.failed_wait:
        yield Finding(Oracle.NOT_SETTLED, f"a step waits in vain: {result.failed_wait}")


def _final_state(scenario: Scenario, learned: Learned, result: RunResult) -> Iterator[Finding]:
    yield from _lost_updates(learned, result)
    normal = normalize({key: _without_annotation(obj) for key, obj in result.final.items()}, learned.noise)
    keys = touched(learned.noise, learned.baseline, result)
    findings = [
        _of_difference(one) for one in differences(learned.normal, normal, learned.noise, keys, scenario.ignored)
    ]
    yield from findings
    changed = {one.object for one in findings}
    for key, obj in normal.items():
        if findings and key not in changed and (claim := _claim(obj)) and _claim(learned.normal.get(key) or {}):
            about = next((one for one in findings if _is_related(obj, one)), None)
            if about is not None:
                message = f"{key} claims {claim}, although {about.message}"
                yield Finding(Oracle.FALSE_STATUS, message, object=key, path="/status/conditions")
    for key, obj in result.final.items():
        observed, generation = _observed(obj), (obj.get("metadata") or {}).get("generation")
        if isinstance(observed, int) and isinstance(generation, int) and observed > generation:
            message = f"{key} has observed generation {observed}, but its generation is {generation}"
            yield Finding(Oracle.FALSE_STATUS, message, object=key, path="/status/observedGeneration")


def _lost_updates(learned: Learned, result: RunResult) -> Iterator[Finding]:
    """Yield the objects that lost the annotation of another client."""
    if not any(one.kind is PerturbationKind.CONCURRENT_WRITE for one in result.perturbations):
        return
    written = [change for change in result.changes if CONCURRENT in _annotations(change.object)]
    for change in written[:1]:
        last = next(one for one in reversed(result.changes) if one.key == change.key)
        uids = {_uid(change.object), _uid(last.object)}
        if last.object is None or len(uids) > 1 or CONCURRENT in _annotations(last.object):
            continue
        path = "/metadata/annotations/" + CONCURRENT.replace("/", "~1")
        key = key_of(last.object)
        message = f"{key} lost the annotation that another client wrote"
        yield Finding(Oracle.FINAL_STATE, message, key, path, "written", None)


def _annotations(obj: Json | None) -> Json:
    return ((obj or {}).get("metadata") or {}).get("annotations") or {}


def _uid(obj: Json | None) -> str:
    return str(((obj or {}).get("metadata") or {}).get("uid") or "")


def _without_annotation(obj: Json) -> Json:
    annotations = _annotations(obj)
    if CONCURRENT not in annotations:
        return obj
    kept = {key: value for key, value in annotations.items() if key != CONCURRENT}
    meta = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    return {**obj, "metadata": meta | ({"annotations": kept} if kept else {})}


def _of_difference(one: Difference) -> Finding:
    if not one.path:
        if one.actual is None:
            return Finding(Oracle.FINAL_STATE, f"{one.object} is missing", one.object, "", one.expected, None)
        return Finding(Oracle.LEAK, f"{one.object} is left over", one.object, "", None, one.actual)
    if one.path.startswith("/metadata/finalizers") or one.path == "/metadata/deletionTimestamp":
        message = f"{one.object} keeps {one.path.rpartition('/')[2]} {one.actual!r:.100}"
        return Finding(Oracle.LEAK, message, one.object, one.path, one.expected, one.actual)
    if one.path.endswith("/observedGeneration"):
        message = f"{one.object} has not observed its generation"
        return Finding(Oracle.FALSE_STATUS, message, one.object, one.path, one.expected, one.actual)
    message = f"{one.object} {one.path} is {one.actual!r:.100}, not {one.expected!r:.100}"
    return Finding(Oracle.FINAL_STATE, message, one.object, one.path, one.expected, one.actual)


def _claim(obj: Mapping[str, Any]) -> str:
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") in _READY_CONDITIONS and condition.get("status") == "True":
            return str(condition["type"])
    return ""


def _is_related(obj: Json, finding: Finding) -> bool:
    """Whether the finding concerns an object that `obj` owns."""
    other = finding.expected if isinstance(finding.expected, dict) else finding.actual
    if not isinstance(other, dict):
        return False
    owners = (other.get("metadata") or {}).get("ownerReferences") or ()
    meta = obj.get("metadata") or {}
    return any(owner.get("kind") == obj.get("kind") and owner.get("name") == meta.get("name") for owner in owners)


def _observed(obj: Json) -> Any:
    status = obj.get("status")
    return status.get("observedGeneration") if isinstance(status, dict) else None


def _recreated(baseline: RunResult, result: RunResult) -> Iterator[Finding]:
    by_hand = {
        str(one.target) for one in result.perturbations if one.kind is PerturbationKind.DELETE_OWNED and one.target
    }
    if by_hand:
        return
    before = Counter(_recreations(baseline.changes))
    for key, count in Counter(_recreations(result.changes)).items():
        if count > before.get(key, 0) and not any(rule in key for rule in by_hand):
            revision = next(one.revision for one in result.changes if one.object and key_of(one.object) == key)
            message = f"{key} was deleted and created again"
            yield Finding(Oracle.RECREATED, message, object=key, revision=revision)


def _recreations(changes: Sequence[Change]) -> Iterator[str]:
    deleted: set[str] = set()
    for change in changes:
        if change.object is None:
            deleted.add(change.key)
        elif change.previous is None and change.key in deleted:
            yield key_of(change.object)


def violations(scenario: Scenario, result: RunResult) -> Iterator[Finding]:
    """Yield each violated invariant once, at its first revision."""
    rules = scenario.invariants
    if not rules:
        return
    seen: set[tuple[str, str]] = set()
    checks = {rule.name: _Check(rule, scenario) for rule in rules}
    state = _initial_state(result)
    for change in result.changes:
        old = state.pop(change.key, None)
        if change.object is not None:
            state[change.key] = change.object
        for rule in rules:
            if rule.at_end:
                continue
            for key, problem in checks[rule.name].at(change.object, old, state):
                if (rule.name, key) not in seen:
                    seen.add((rule.name, key))
                    yield _violated(rule, key, problem, change.revision)
    for rule in rules:
        if rule.at_end:
            for key, problem in checks[rule.name].at_end(result.final):
                yield _violated(rule, key, problem, 0)


def _initial_state(result: RunResult) -> dict[str, Json]:
    """Return the objects of the snapshot that the run changed, by storage key."""
    first: dict[str, Json] = {}
    seen: set[str] = set()
    for change in result.changes:
        if change.key not in seen and change.previous is not None:
            first[change.key] = change.previous
        seen.add(change.key)
    return first


def _violated(rule: Invariant, key: str, problem: str, revision: int) -> Finding:
    about = f"{key}: " if key else ""
    message = f"{about}{rule.message or f'the invariant {rule.name} does not hold'}{f' ({problem})' if problem else ''}"
    return Finding(Oracle.INVARIANT, message, object=key, revision=revision, name=rule.name)


class _Check:
    """Evaluates one invariant."""

    def __init__(self, rule: Invariant, scenario: Scenario) -> None:
        self._rule = rule
        self._program = compile_cel(rule.cel) if rule.cel else None
        self._function = python_invariant(rule.python, scenario.program.directory) if rule.python else None

    def at(self, obj: Json | None, old: Json | None, state: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
        """Yield (object, problem) after a change."""
        if self._function is not None:
            objects = {key_of(one): one for one in state.values()}
            yield from (("", problem) for problem in self._function(objects))
        elif not self._rule.kind:
            yield from self._evaluate("", None, None, state.values())
        elif obj is not None and self._selects(obj):
            yield from self._evaluate(key_of(obj), obj, old, state.values())

    def at_end(self, final: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
        """Yield (object, problem) of the final state."""
        if self._function is not None:
            yield from (("", problem) for problem in self._function(dict(final)))
        elif not self._rule.kind:
            yield from self._evaluate("", None, None, final.values())
        else:
            for key, obj in final.items():
                if self._selects(obj):
                    yield from self._evaluate(key, obj, None, final.values())

    def _selects(self, obj: Json) -> bool:
        rule = self._rule
        return obj.get("kind") == rule.kind and rule.api_version in ("", obj.get("apiVersion"))

    def _evaluate(self, key: str, obj: Json | None, old: Json | None, objects: Any) -> Iterator[tuple[str, str]]:
        assert self._program is not None
        by_kind: dict[str, dict[str, Json]] = {}
        if "objects" in self._rule.cel:
            for one in objects:
                by_kind.setdefault(one["kind"], {})[key_of(one).partition(" ")[2]] = one
        holds, error = is_true(self._program, object=obj, oldObject=old, objects=by_kind)
        if not holds:
            yield key, error


def _refusals(baseline: Sequence[Entry], result: RunResult) -> Iterator[Finding]:
    """Yield denied and rejected requests of the operator that the undisturbed run does not have."""
    known = {_attributes(entry) for entry in baseline}
    for entry in result.timeline:
        if entry.kind is not EntryKind.REQUEST or entry.disturbed or entry.code not in (400, 403, 422):
            continue
        if _attributes(entry) in known:
            continue
        known.add(_attributes(entry))
        oracle = Oracle.DENIED if entry.code == 403 else Oracle.REJECTED
        message = entry.options.get("error") or (entry.body if isinstance(entry.body, str) else "")
        place = "/".join(part for part in (entry.namespace, entry.name) if part)
        yield Finding(oracle, f"{entry.verb} {entry.resource} {place} was refused: {message}".strip())


def _attributes(entry: Entry) -> tuple[str, str, str, str, int]:
    return (entry.verb, entry.group, entry.resource, entry.subresource, entry.code)

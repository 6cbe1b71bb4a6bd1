"""Reports of an exploration: a page of text for each bug, a pytest file that reproduces it, JUnit XML and JSON."""

from __future__ import annotations

import json
import os
import pprint
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from pilothouse.explore.classify import Bug, BugClass, Classification, bugs, classify, describe, is_extra, is_missing
from pilothouse.explore.model import (
    Change,
    Entry,
    EntryKind,
    Finding,
    Oracle,
    Outcome,
    PerturbationKind,
    RunResult,
    Verdict,
    to_json,
)
from pilothouse.explore.recording import compare, unmanaged
from pilothouse.explore.scenario import API_VERSION, Scenario
from pilothouse.machinery.objects import Json

_WIDTH: Final = 118
_LEFT: Final = 74
"""Columns of the operator's requests; the revisions of objects are to the right."""
_MAX_LINES: Final = 60
_MAX_VALUE: Final = 100
_READS: Final = ("get", "list", "watch")


def summary(outcome: Outcome) -> str:
    """Return the result in a few lines: counts, and one line for each bug."""
    found = bugs(outcome)
    runs = f"{len(outcome.verdicts)} perturbed runs" if len(outcome.verdicts) != 1 else "1 perturbed run"
    left = f", {outcome.left} not run (budget)" if outcome.left else ""
    skipped = f", {outcome.skipped} skipped (cannot change the outcome)" if outcome.skipped else ""
    lines = [f"{outcome.scenario}: {runs} in {outcome.seconds:.1f} s{left}{skipped}, seed {outcome.seed}"]
    for number, bug in enumerate(found, 1):
        lines.append(f"  {number}. {bug.classification.bug_class}: {bug.finding.message}")
    return "\n".join([*lines, f"{len(found)} bug{'s' * (len(found) != 1)} found" if found else "no bug found"])


def page(verdict: Verdict, baseline: RunResult, classification: Classification, others: Iterable[Verdict] = ()) -> str:
    """Return one page about a failed run: disturbance, reason, difference and timeline."""
    disturbed = [_sentence(describe(one)) for one in verdict.perturbations] or ["Nothing: the undisturbed run fails."]
    blocks = [
        _block("Bug", [_sentence(classification.bug_class)]),
        _block("Disturbed", disturbed),
        _block("Likely reason", textwrap.wrap(classification.reason, _WIDTH - 2)),
        _block("Difference", [line for finding in verdict.findings for line in _difference(finding)]),
        _block("Timeline: requests of the operator | revisions of objects", timeline(verdict.result)),
    ]
    if also := [_sentence(" and ".join(map(describe, other.perturbations))) for other in others]:
        blocks.append(_block("Also found by", also))
    if verdict.result.output and verdict.result.crashes:
        blocks.append(_block("Output of the operator", verdict.result.output.splitlines()[-20:]))
    return "\n\n".join(blocks) + "\n"


def bug_page(bug: Bug, baseline: RunResult) -> str:
    """Return the page of a bug."""
    return page(bug.verdict, baseline, bug.classification, bug.others)


def timeline(result: RunResult) -> list[str]:
    """Return the lines of the timeline: steps, requests and events of the operator beside the revisions they made."""
    lines = []
    for entry, change in _rows(result):
        left, right = _entry(entry) if entry is not None else "", _change(change) if change is not None else ""
        lines.append(f"{left:<{_LEFT}}| {right}".rstrip(" |"))
    return _shorten(lines)


def _rows(result: RunResult) -> Iterator[tuple[Entry | None, Change | None]]:
    """Yield (entry, revision), both in the order of the run. Reads that no perturbation hit are left out, and events
    of objects that never change.
    """
    waiting = list(result.changes)
    changed = {_place(change) for change in result.changes}
    made = {entry.revision for entry in result.timeline if _is_write(entry)}
    for entry in result.timeline:
        seen = max(entry.before, 0 if entry.kind == EntryKind.REQUEST else entry.revision)
        while waiting and waiting[0].revision <= seen and waiting[0].revision not in made:
            yield None, waiting.pop(0)
        own = None
        if _is_write(entry):
            while waiting and waiting[0].revision < entry.revision:
                yield None, waiting.pop(0)
            if waiting and waiting[0].revision == entry.revision:
                own = waiting.pop(0)
        is_plain_read = entry.kind == EntryKind.REQUEST and entry.verb in _READS and not entry.disturbed
        if not is_plain_read and (entry.kind != EntryKind.EVENT or (entry.namespace, entry.name) in changed):
            yield entry, own
    yield from ((None, change) for change in waiting)


def _is_write(entry: Entry) -> bool:
    """Whether the operator changed an object."""
    return entry.kind == EntryKind.REQUEST and entry.verb not in _READS and entry.revision > 0


def _entry(entry: Entry) -> str:
    place = "/".join(part for part in (entry.namespace, entry.name) if part)
    resource = entry.resource + (f"/{entry.subresource}" if entry.subresource else "")
    mark = "!" if entry.disturbed else " "
    match entry.kind:
        case EntryKind.STEP:
            return f"= step {entry.step + 1}: {entry.message}"
        case EntryKind.ACTION:
            return f"! {entry.message}"
        case EntryKind.EVENT:
            return f"{mark}   sees {entry.verb} {resource} {place}"
        case _:
            answer = str(entry.code) if entry.code else "no response"
            stale = f" at revision {entry.revision}" if entry.verb in ("get", "list") and entry.revision else ""
            return f"{mark} {entry.verb} {resource} {place} -> {answer}{stale}"


def _change(change: Change) -> str:
    obj = change.object if change.object is not None else change.previous or {}
    name = "/".join(filter(None, _place(change)))
    sign = "-" if change.object is None else "+" if change.previous is None else "~"
    return f"{change.revision} {sign} {obj.get('kind') or change.key} {name}".rstrip()


def _place(change: Change) -> tuple[str, str]:
    """Return namespace and name of the changed object."""
    metadata = (change.object or change.previous or {}).get("metadata") or {}
    return metadata.get("namespace") or "", metadata.get("name") or ""


def _shorten(lines: list[str]) -> list[str]:
    if len(lines) <= _MAX_LINES:
        return lines
    half = _MAX_LINES // 2
    return [*lines[:half], f"… {len(lines) - 2 * half} lines …", *lines[-half:]]


def _difference(finding: Finding) -> Iterator[str]:
    yield f"{finding.oracle}: {_sentence(finding.message)}"
    if not is_extra(finding) and not is_missing(finding) and (finding.expected, finding.actual) != (None, None):
        yield f"  expected {_value(finding.expected)}"
        yield f"  actual   {_value(finding.actual)}"


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]} …"


def _block(title: str, lines: Iterable[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "…")) else f"{text}."


def reproduction(scenario: Scenario, verdict: Verdict, *, folder: Path | None = None, baseline: RunResult) -> str:
    """Return a pytest file for `folder` that repeats the run; it fails while the operator has the bug.

    `folder` is the folder of explore.yaml by default. Raises ValueError for a scenario without a file.
    """
    if scenario.file is None:
        raise ValueError("the scenario has no explore.yaml")
    classification = classify(verdict, baseline)
    place = os.path.relpath(scenario.file, folder or scenario.file.parent)
    steps = tuple(verdict.result.steps)
    return _REPRODUCTION.format(
        title=classification.bug_class.value.capitalize(),
        scenario=scenario.name,
        reason=textwrap.fill(classification.reason, _WIDTH),
        file=Path(place).as_posix(),
        perturbations=pprint.pformat([_identity(to_json(one)) for one in verdict.perturbations], width=_WIDTH),
        name=f"{_identifier(classification.bug_class)}_of_{_identifier(scenario.name)}",
        steps="" if not steps or steps == tuple(range(len(scenario.steps))) else f", steps={steps!r}",
    )


_REPRODUCTION: Final = '''"""{title}, found by `pilothouse explore` in {scenario}.

{reason}
"""

import asyncio
from pathlib import Path

from pilothouse.explore import reproduce

SCENARIO = Path(__file__).parent / "{file}"
PERTURBATIONS = {perturbations}


def test_{name}() -> None:
    verdict = asyncio.run(reproduce(SCENARIO, PERTURBATIONS{steps}))
    assert verdict.passed, "\\n".join(finding.message for finding in verdict.findings)
'''


def _identity(perturbation: Json) -> Json:
    """Leave out the remarks of the planner."""
    return {name: value for name, value in perturbation.items() if name not in ("reason", "score")}


def _identifier(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower()).strip("_")


def reproduction_name(scenario: Scenario, number: int) -> str:
    """Return the file name of a reproduction.

    >>> from pilothouse.explore.scenario import Program, Scenario
    >>> reproduction_name(Scenario("lost-update", Program(), ()), 1)
    'test_explore_lost_update_1.py'
    """
    return f"test_explore_{_identifier(scenario.name)}_{number}.py"


def junit(outcome: Outcome) -> str:
    """Return JUnit XML: one test case for the undisturbed run and for each perturbation."""
    runs = [("undisturbed", outcome.baseline)]
    runs += [(" + ".join(one.id for one in verdict.perturbations), verdict) for verdict in outcome.verdicts]
    failed = [verdict for _, verdict in runs if not verdict.passed]
    suite = ElementTree.Element(
        "testsuite",
        name=outcome.scenario,
        tests=str(len(runs)),
        failures=str(len(failed)),
        errors="0",
        skipped="0",
        time=f"{outcome.seconds:.3f}",
    )
    for name, verdict in runs:
        seconds = f"{verdict.result.seconds:.3f}"
        case = ElementTree.SubElement(suite, "testcase", classname=outcome.scenario, name=name, time=seconds)
        if not verdict.passed:
            classification = classify(verdict, outcome.baseline.result)
            failure = ElementTree.SubElement(
                case,
                "failure",
                type=classification.bug_class.value,
                message=_printable(verdict.findings[0].message),
            )
            failure.text = _printable(page(verdict, outcome.baseline.result, classification))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """Remove characters that XML 1.0 does not allow."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)


_TEXT: Final[Json] = {"type": "string"}


def _schema(description: str, of: Json | None = None, **properties: Json) -> Json:
    """Return the schema of an array of `of`, or of an object whose fields are all required."""
    if of is not None:
        return {"type": "array", "description": description, "items": of}
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _field(of: str, description: str, **more: Any) -> Json:
    return {"type": of, "description": description, **more}


_TIMELINE: Final[Json] = _schema(
    "One line of a timeline, in the order of the run: an action of the operator, of a step or of the explorer, a new"
    " revision of an object, or both, if the action wrote the revision.",
    kind=_field(
        "string",
        "Step, Request (of the operator), Event (received by the operator), Action (of the explorer), or Change: a"
        " revision that the operator did not write.",
        enum=[*(kind.value for kind in EntryKind), "Change"],
    ),
    time=_field("number", "Virtual seconds since the start of the run; of a Change, the time of the line before."),
    step=_field("integer", "Index of the last performed step; -1 before the first step."),
    request=_field("string", "Text of the action; empty for a Change."),
    revision=_field(
        "string", "Text of the revision: number, sign (+ created, ~ changed, - deleted), object; or empty."
    ),
    verb=_field("string", "Verb of a Request, type of an Event; else empty."),
    resource=_field("string", "`resource.group/subresource` of a Request or Event; else empty."),
    object=_field("string", "`namespace/name` of the line's object, or empty."),
    code=_field("integer", "HTTP status of a Request; 0: no response, or no Request."),
    disturbed=_field("boolean", "Whether a perturbation hit the request or event."),
    changes=_schema(
        "Fields that the revision changed; empty for created and deleted objects.",
        _schema(
            "One field.",
            path=_field("string", "JSON pointer."),
            old={"description": "Value before; `<missing>` for a new field."},
            new={"description": "Value after; `<missing>` for a removed field."},
        ),
    ),
)
_FINDING: Final[Json] = _schema(
    "One violated rule.",
    oracle=_field("string", "The rule.", enum=[oracle.value for oracle in Oracle]),
    message=_field("string", "One sentence: the object, the problem."),
    object=_field("string", "`Kind.group namespace/name`, or empty."),
    path=_field("string", "JSON pointer of the differing field; empty for a whole object."),
    expected={"description": "Value in the undisturbed run; null: no such object or field."},
    actual={"description": "Value in the failed run; null: no such object or field."},
)
REPORT_SCHEMA: Final[Json] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "ExplorationReport",
    **_schema(
        "Report of an exploration, as `--json` writes it.",
        apiVersion=_field("string", "Version of the format.", enum=[API_VERSION]),
        kind=_field("string", "Kind of the document.", enum=["ExplorationReport"]),
        scenario=_field("string", "Name of the scenario."),
        steps=_schema("Names of the steps of the scenario.", _TEXT),
        seed=_field("integer", "Seed of the order of the runs."),
        seconds=_field("number", "Real duration of the exploration."),
        planned=_field("integer", "Number of planned perturbations."),
        skipped=_field("integer", "Number of perturbations that cannot change the outcome."),
        left=_field("integer", "Number of planned perturbations that the budget did not allow."),
        noise=_schema("Differences between undisturbed runs, which comparisons ignore.", _TEXT),
        bugs=_schema(
            "Bugs, strongest evidence first. Failed runs with the same difference are one bug.",
            _schema(
                "One bug, shown by its smallest failed run.",
                **{"class": _field("string", "Class of the bug.", enum=[one.value for one in BugClass])},
                reason=_field("string", "Likely reason, in a sentence or two."),
                object=_field("string", "`Kind.group namespace/name` of the first differing object, or empty."),
                message=_field("string", "The finding that describes the bug best."),
                perturbations=_schema(
                    "Perturbations of the run; empty if the undisturbed run fails.",
                    _schema(
                        "One perturbation.",
                        id=_field("string", "Identity of the perturbation in the scenario."),
                        kind=_field("string", "Kind.", enum=[kind.value for kind in PerturbationKind]),
                        text=_field("string", "The perturbation as a noun phrase."),
                        step=_field("integer", "Index of the step of the perturbation; -1: not bound to a step."),
                    ),
                ),
                steps=_schema("Indices of the performed steps.", {"type": "integer"}),
                findings=_schema("Violated rules.", _FINDING),
                timeline=_schema("Timeline of the run.", _TIMELINE),
                others=_schema("Further runs that show the bug: their perturbations as text.", _TEXT),
                page=_field("string", "The page of `pilothouse explore` as text."),
                reproduction=_field("string", "pytest file that reproduces the bug; empty without perturbations."),
            ),
        ),
        runs=_schema(
            "Perturbed runs in the order of the plan.",
            _schema(
                "One run.",
                id=_field("string", "Identity of its perturbation."),
                text=_field("string", "The perturbation as a noun phrase."),
                passed=_field("boolean", "Whether the run has no findings."),
                reached=_field("boolean", "Whether the operator reached the point of the perturbation."),
                findings=_schema("Messages of the findings.", _TEXT),
                bug=_field("integer", "Index in `bugs`; -1 if the run passed."),
                seconds=_field("number", "Real duration."),
            ),
        ),
        undisturbed=_schema("Timeline of the undisturbed run; lines as in `bugs[].timeline`.", _TIMELINE),
    ),
}


def to_document(outcome: Outcome, scenario: Scenario, shrunk: Sequence[Bug] = ()) -> Json:
    """Return the JSON of an exploration in the form of REPORT_SCHEMA, for programs and for the console.

    `shrunk` are the bugs of the outcome in the order of `bugs`, with their smallest runs.
    """
    found = bugs(outcome)
    numbers = {id(run): number for number, bug in enumerate(found) for run in (bug.verdict, *bug.others)}
    return {
        "apiVersion": API_VERSION,
        "kind": "ExplorationReport",
        "scenario": outcome.scenario,
        "steps": [step.name for step in scenario.steps],
        "seed": outcome.seed,
        "seconds": round(outcome.seconds, 3),
        "planned": outcome.planned,
        "skipped": outcome.skipped,
        "left": outcome.left,
        "noise": list(outcome.noise),
        "bugs": [_bug_document(bug, outcome, scenario) for bug in shrunk or found],
        "runs": [
            {
                "id": _ids(verdict),
                "text": _texts(verdict),
                "passed": verdict.passed,
                "reached": not verdict.result.missed,
                "findings": [finding.message for finding in verdict.findings],
                "bug": numbers.get(id(verdict), -1),
                "seconds": round(verdict.result.seconds, 3),
            }
            for verdict in outcome.verdicts
        ],
        "undisturbed": _timeline_document(outcome.baseline.result),
    }


def _bug_document(bug: Bug, outcome: Outcome, scenario: Scenario) -> Json:
    verdict, baseline = bug.verdict, outcome.baseline.result
    has_file = bool(verdict.perturbations) and scenario.file is not None
    return {
        "class": bug.classification.bug_class.value,
        "reason": bug.classification.reason,
        "object": bug.finding.object,
        "message": bug.finding.message,
        "perturbations": [
            {"id": one.id, "kind": one.kind.value, "text": describe(one), "step": one.step}
            for one in verdict.perturbations
        ],
        "steps": list(verdict.result.steps),
        "findings": [
            {
                "oracle": one.oracle.value,
                "message": one.message,
                "object": one.object,
                "path": one.path,
                "expected": one.expected,
                "actual": one.actual,
            }
            for one in verdict.findings
        ],
        "timeline": _timeline_document(verdict.result),
        "others": [_texts(other) for other in bug.others],
        "page": bug_page(bug, baseline),
        "reproduction": reproduction(scenario, verdict, baseline=baseline) if has_file else "",
    }


def _ids(verdict: Verdict) -> str:
    return " + ".join(one.id for one in verdict.perturbations)


def _texts(verdict: Verdict) -> str:
    return " and ".join(map(describe, verdict.perturbations))


def _timeline_document(result: RunResult) -> list[Json]:
    rows: list[Json] = []
    time, step = 0.0, -1
    for entry, change in _rows(result):
        kind, verb, resource, place = "Change", "", "", ""
        if change is not None:
            place = "/".join(filter(None, _place(change)))
        if entry is not None:
            kind, time, step = entry.kind.value, entry.time, entry.step
            if entry.kind in (EntryKind.REQUEST, EntryKind.EVENT):
                group = f".{entry.group}" if entry.group else ""
                resource = f"{entry.resource}{group}" + (f"/{entry.subresource}" if entry.subresource else "")
                verb, place = entry.verb, "/".join(part for part in (entry.namespace, entry.name) if part)
        rows.append(
            {
                "kind": kind,
                "time": time,
                "step": step,
                "request": "" if entry is None else _entry(entry).strip(" !="),
                "revision": "" if change is None else _change(change),
                "verb": verb,
                "resource": resource,
                "object": place,
                "code": 0 if entry is None else entry.code,
                "disturbed": entry is not None and (entry.disturbed or entry.kind is EntryKind.ACTION),
                "changes": [] if change is None else _changed_fields(change),
            }
        )
    return rows


def _changed_fields(change: Change) -> list[Json]:
    """Return the differing fields of two revisions, without the metadata that the server manages."""
    if change.object is None or change.previous is None:
        return []
    old, new = ({**obj, "metadata": unmanaged(obj.get("metadata") or {})} for obj in (change.previous, change.object))
    return [{"path": path, "old": before, "new": after} for path, before, after in compare(old, new)]

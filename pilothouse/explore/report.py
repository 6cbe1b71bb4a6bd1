"""Reports of an exploration: a page of text for each bug, a pytest file that reproduces it, JUnit XML and JSON."""

from __future__ import annotations

import json
import os
import pprint
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from pilothouse.explore.classify import Bug, Classification, bugs, classify, describe, is_extra, is_missing
from pilothouse.explore.model import Change, Entry, EntryKind, Finding, Outcome, RunResult, Verdict, to_json
from pilothouse.explore.scenario import Scenario
from pilothouse.machinery.objects import Json

_WIDTH: Final = 118
_LEFT: Final = 74
"""Columns of the operator's requests; the revisions of objects are to the right."""
_MAX_LINES: Final = 60
_MAX_VALUE: Final = 100


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
    return _shorten([f"{left:<{_LEFT}}| {right}".rstrip(" |") for left, right in _rows(result)])


def _rows(result: RunResult) -> Iterator[tuple[str, str]]:
    """Yield (request, revision), both in the order of the run. Events of objects that never change are left out."""
    waiting = list(result.changes)
    changed = {_place(change) for change in result.changes}
    made = {entry.revision for entry in result.timeline if _is_write(entry)}
    for entry in result.timeline:
        seen = max(entry.before, 0 if entry.kind == EntryKind.REQUEST else entry.revision)
        while waiting and waiting[0].revision <= seen and waiting[0].revision not in made:
            yield "", _change(waiting.pop(0))
        own = ""
        if _is_write(entry):
            while waiting and waiting[0].revision < entry.revision:
                yield "", _change(waiting.pop(0))
            if waiting and waiting[0].revision == entry.revision:
                own = _change(waiting.pop(0))
        if (text := _entry(entry)) and (entry.kind != EntryKind.EVENT or (entry.namespace, entry.name) in changed):
            yield text, own
    yield from (("", _change(change)) for change in waiting)


def _is_write(entry: Entry) -> bool:
    """Whether the operator changed an object."""
    return entry.kind == EntryKind.REQUEST and entry.verb not in ("get", "list", "watch") and entry.revision > 0


def _entry(entry: Entry) -> str:
    """Return the text of an entry; empty for reads, which fill the page and decide nothing by themselves."""
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
        case EntryKind.REQUEST if entry.verb in ("get", "list", "watch") and not entry.disturbed:
            return ""
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


def to_document(outcome: Outcome) -> Json:
    """Return the JSON of an exploration, for programs and for the console."""
    found = bugs(outcome)
    return {
        "apiVersion": "explore.pilothouse.dev/v1alpha1",
        "kind": "ExplorationReport",
        "scenario": outcome.scenario,
        "seed": outcome.seed,
        "seconds": round(outcome.seconds, 3),
        "planned": outcome.planned,
        "skipped": outcome.skipped,
        "left": outcome.left,
        "noise": list(outcome.noise),
        "bugs": [_bug_document(bug, outcome) for bug in found],
        "runs": [_run_document(verdict) for verdict in outcome.verdicts],
        "undisturbed": _timeline_document(outcome.baseline.result),
    }


def _bug_document(bug: Bug, outcome: Outcome) -> Json:
    return {
        "class": bug.classification.bug_class.value,
        "reason": bug.classification.reason,
        "object": bug.finding.object,
        "message": bug.finding.message,
        "perturbations": [to_json(one) | {"text": describe(one)} for one in bug.verdict.perturbations],
        "findings": [to_json(finding) for finding in bug.verdict.findings],
        "timeline": _timeline_document(bug.verdict.result),
        "others": [[describe(one) for one in other.perturbations] for other in bug.others],
        "page": bug_page(bug, outcome.baseline.result),
    }


def _run_document(verdict: Verdict) -> Json:
    return {
        "perturbations": [one.id for one in verdict.perturbations],
        "passed": verdict.passed,
        "findings": [finding.message for finding in verdict.findings],
        "seconds": round(verdict.result.seconds, 3),
    }


def _timeline_document(result: RunResult) -> list[Json]:
    """Return the rows of the timeline: `request` (operator, steps and explorer) beside `revision` (objects)."""
    return [{"request": left, "revision": right} for left, right in _rows(result)]

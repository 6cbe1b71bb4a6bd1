"""Classes of bugs, shrinking and reports, from made-up results of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from example_module import EXAMPLES

from pilothouse.explore.classify import BugClass, bugs, classify
from pilothouse.explore.model import (
    Change,
    Entry,
    EntryKind,
    Finding,
    ObjectRef,
    Oracle,
    Outcome,
    Perturbation,
    PerturbationKind,
    Point,
    RunResult,
    Verdict,
)
from pilothouse.explore.report import REPORT_SCHEMA, bug_page, junit, reproduction, summary, to_document
from pilothouse.explore.scenario import Program, Scenario, Step, validate
from pilothouse.explore.shrink import shrink

CREATE = Point("create", "configmaps", namespace="default", name="web")
CONFIG_MAP = {"kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}}
MISSING = Finding(Oracle.FINAL_STATE, "ConfigMap default/web is missing", "ConfigMap default/web", expected=CONFIG_MAP)
EXTRA = Finding(Oracle.LEAK, "ConfigMap default/web remains", "ConfigMap default/web", actual=CONFIG_MAP)
RECREATED = Finding(Oracle.RECREATED, "ConfigMap default/web was deleted and created again", "ConfigMap default/web")
FIELD = replace(MISSING, path="/data/a", expected="1", actual="2", message="/data/a of ConfigMap default/web differs")
ENDLESS = Finding(Oracle.NOT_SETTLED, "the operator does not stop to write")
BASELINE = RunResult(timeline=(Entry(1, EntryKind.REQUEST, verb="create", resource="configmaps", revision=5),))


def write(number: int, verb: str, resource: str = "configmaps", **more: Any) -> Entry:
    defaults: dict[str, Any] = {"namespace": "default", "name": "web", "code": 200, "revision": 10 + number}
    return Entry(number, EntryKind.REQUEST, verb=verb, resource=resource, **(defaults | more))


def verdict_of(
    kind: PerturbationKind | None, *findings: Finding, timeline: Sequence[Entry] = (), **more: Any
) -> Verdict:
    perturbations = () if kind is None else (Perturbation(kind, CREATE, **more),)
    return Verdict(RunResult(perturbations, tuple(timeline)), findings)


SECOND_CREATE = [write(1, "create", code=0), write(2, "create")]
BLIND_UPDATE = [write(1, "update", body={"metadata": {"name": "web"}})]
CHECKED_UPDATE = [write(1, "update", body={"metadata": {"name": "web", "resourceVersion": "7"}})]
SWALLOWED = [write(1, "create", code=500, revision=0, disturbed=True), write(2, "patch", "sites", subresource="status")]
REPEATED = [*SWALLOWED, write(3, "create")]

CASES = [
    (BugClass.LIVELOCK, verdict_of(None, ENDLESS)),
    (BugClass.LIVELOCK, verdict_of(PerturbationKind.FAIL, ENDLESS, MISSING)),
    (BugClass.NON_IDEMPOTENT_CREATE, verdict_of(PerturbationKind.LOSE_RESPONSE, EXTRA, timeline=SECOND_CREATE)),
    (BugClass.NON_IDEMPOTENT_CREATE, verdict_of(PerturbationKind.KILL_AFTER, EXTRA, timeline=SECOND_CREATE)),
    (BugClass.LOST_UPDATE, verdict_of(PerturbationKind.CONCURRENT_WRITE, FIELD)),
    (BugClass.LOST_UPDATE, verdict_of(PerturbationKind.TWO_INSTANCES, FIELD, timeline=BLIND_UPDATE)),
    (BugClass.STALENESS, verdict_of(PerturbationKind.TWO_INSTANCES, FIELD, timeline=CHECKED_UPDATE)),
    (BugClass.STALENESS, verdict_of(PerturbationKind.STALE_READ, RECREATED)),
    (BugClass.LEAK, verdict_of(PerturbationKind.KILL_BEFORE, EXTRA)),
    (BugClass.LEAK, verdict_of(PerturbationKind.DOWN_DURING_STEP, EXTRA)),
    (BugClass.FALSE_STATUS, verdict_of(PerturbationKind.FAIL, MISSING, timeline=SWALLOWED)),
    (BugClass.CRASH_CONSISTENCY, verdict_of(PerturbationKind.FAIL, MISSING, timeline=REPEATED)),
    (BugClass.CRASH_CONSISTENCY, verdict_of(PerturbationKind.KILL_BEFORE, MISSING)),
    (BugClass.MISSED_EVENT, verdict_of(PerturbationKind.DELETE_OWNED, MISSING)),
    (BugClass.MISSED_EVENT, verdict_of(PerturbationKind.MERGE_EVENTS, FIELD)),
    (BugClass.INVALID_REQUEST, verdict_of(PerturbationKind.DELAY_EVENT, Finding(Oracle.REJECTED, "invalid"))),
    (BugClass.CRASH, verdict_of(PerturbationKind.EXPIRE_WATCH, Finding(Oracle.CRASHED, "exit code 1"))),
]


@pytest.mark.parametrize(("expected", "verdict"), CASES)
def test_a_failed_run_has_a_class_and_a_reason(expected: BugClass, verdict: Verdict) -> None:
    classification = classify(verdict, BASELINE)
    assert classification.bug_class == expected
    assert classification.reason.endswith(".")
    assert "{" not in classification.reason


def test_a_passed_run_has_no_class() -> None:
    with pytest.raises(ValueError, match="no findings"):
        classify(verdict_of(PerturbationKind.FAIL), BASELINE)


def outcome_of(*verdicts: Verdict, baseline: Verdict | None = None) -> Outcome:
    return Outcome("web", baseline or Verdict(BASELINE), verdicts, planned=9, skipped=2, left=3, seed=7, seconds=1.25)


def test_runs_with_the_same_difference_are_one_bug_with_the_strongest_class() -> None:
    deleted = verdict_of(PerturbationKind.DELETE_OWNED, MISSING)
    killed = verdict_of(PerturbationKind.KILL_AFTER, MISSING)
    leaked = verdict_of(PerturbationKind.DROP_AND_RELIST, EXTRA)
    passed = verdict_of(PerturbationKind.TIMEOUT)
    leak, crash = bugs(outcome_of(deleted, passed, killed, leaked))
    assert leak.classification.bug_class == BugClass.LEAK
    assert crash.classification.bug_class == BugClass.CRASH_CONSISTENCY
    assert (crash.verdict, crash.others) == (killed, (deleted,))


def test_an_undisturbed_run_that_fails_comes_first() -> None:
    baseline = verdict_of(None, ENDLESS)
    leaked = verdict_of(PerturbationKind.KILL_AFTER, EXTRA)
    assert [bug.verdict for bug in bugs(outcome_of(leaked, baseline=baseline))] == [baseline, leaked]


TIMELINE = (
    Entry(1, EntryKind.STEP, "user", message="apply Site web", step=0),
    Entry(2, EntryKind.EVENT, verb="ADDED", resource="sites", namespace="default", name="web", before=10, revision=10),
    Entry(3, EntryKind.REQUEST, verb="list", resource="configmaps", code=200, before=10, revision=10),
    write(4, "create", before=10, revision=11, code=0, disturbed=True),
    Entry(5, EntryKind.ACTION, "explorer", message="killed the operator", before=11),
    write(6, "delete", before=11, revision=12),
)
SITE = {"kind": "Site", "metadata": {"name": "web", "namespace": "default"}}
CHANGES = (
    Change(10, "/registry/sites/default/web", SITE),
    Change(11, "/registry/configmaps/default/web", CONFIG_MAP),
    Change(12, "/registry/configmaps/default/web", None, CONFIG_MAP),
)
KILLED = Verdict(
    RunResult((Perturbation(PerturbationKind.KILL_AFTER, CREATE),), TIMELINE, CHANGES, steps=(0,)), (MISSING,)
)


def test_the_page_shows_disturbance_reason_difference_and_timeline() -> None:
    text = bug_page(bugs(outcome_of(KILLED, verdict_of(PerturbationKind.DELETE_OWNED, MISSING, step=0)))[0], BASELINE)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Crash consistency." in lines
    assert "A crash just after `create configmaps default/web`." in lines
    assert "FinalState: ConfigMap default/web is missing." in lines
    start = lines.index("= step 1: apply Site web")
    assert lines[start : start + 6] == [
        "= step 1: apply Site web",
        "| 10 + Site default/web",
        "sees ADDED sites default/web",
        "! create configmaps default/web -> no response | 11 + ConfigMap default/web",
        "! killed the operator",
        "delete configmaps default/web -> 200 | 12 - ConfigMap default/web",
    ]
    assert lines[-2] == "Also found by"


def test_the_summary_counts_runs_and_names_bugs() -> None:
    text = summary(outcome_of(KILLED, verdict_of(PerturbationKind.TIMEOUT)))
    assert "web: 2 perturbed runs in 1.2 s, 3 not run (budget), 2 skipped (cannot change the outcome), seed 7" in text
    assert "1. crash consistency: ConfigMap default/web is missing" in text
    assert text.endswith("1 bug found")
    assert summary(outcome_of()).endswith("no bug found")


def test_junit_has_a_case_for_each_run() -> None:
    output = replace(KILLED, findings=(replace(MISSING, message="missing \x00 <web>"),))
    suite = ElementTree.fromstring(junit(outcome_of(output, verdict_of(PerturbationKind.TIMEOUT))))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert suite[0].get("name") == "undisturbed"
    failure = suite[1].find("failure")
    assert failure is not None
    assert failure.get("type") == "crash consistency"


def test_the_document_is_json_with_bugs_runs_and_timelines(tmp_path: Path) -> None:
    scenario = Scenario("web", Program(), (Step("apply Site web"),), file=tmp_path / "explore.yaml")
    outcome = outcome_of(KILLED, verdict_of(PerturbationKind.TIMEOUT))
    document = json.loads(json.dumps(to_document(outcome, scenario)))
    assert [*validate(document, REPORT_SCHEMA)] == []
    (bug,) = document["bugs"]
    assert (bug["class"], bug["object"]) == ("crash consistency", "ConfigMap default/web")
    assert "def test_crash_consistency_of_web()" in bug["reproduction"]
    assert [(line["kind"], line["request"], line["revision"]) for line in bug["timeline"]] == [
        ("Step", "step 1: apply Site web", ""),
        ("Change", "", "10 + Site default/web"),
        ("Event", "sees ADDED sites default/web", ""),
        ("Request", "create configmaps default/web -> no response", "11 + ConfigMap default/web"),
        ("Action", "killed the operator", ""),
        ("Request", "delete configmaps default/web -> 200", "12 - ConfigMap default/web"),
    ]
    assert [(run["passed"], run["bug"]) for run in document["runs"]] == [(False, 0), (True, -1)]
    assert (document["planned"], document["left"]) == (9, 3)


def test_the_report_of_the_example_has_the_form_of_the_schema() -> None:
    document = json.loads((EXAMPLES / "explore" / "crash_between_writes" / "report.json").read_bytes())
    assert [*validate(document, REPORT_SCHEMA)] == []
    assert [bug["class"] for bug in document["bugs"]] == ["crash consistency", "missed event"]


def test_the_reproduction_is_a_python_program_for_the_same_scenario(tmp_path: Path) -> None:
    steps = (Step("apply Site web"), Step("delete Site web"))
    scenario = Scenario("web-sites", Program(), steps, file=tmp_path / "explore.yaml")
    text = reproduction(scenario, KILLED, folder=tmp_path / "found", baseline=BASELINE)
    compile(text, "test_explore.py", "exec")
    assert "def test_crash_consistency_of_web_sites() -> None:" in text
    assert 'SCENARIO = Path(__file__).parent / "../explore.yaml"' in text
    assert "'kind': 'KillAfter'" in text
    assert "PERTURBATIONS, steps=(0,))" in text
    with pytest.raises(ValueError, match=r"no explore\.yaml"):
        reproduction(replace(scenario, file=None), KILLED, baseline=BASELINE)


class FailingRuns:
    """Runs that fail if they have the perturbation and the steps that the bug needs."""

    def __init__(self, needed: Perturbation, steps: set[int]) -> None:
        self.needed, self.steps, self.count = needed, steps, 0

    async def run(self, perturbations: Sequence[Perturbation], steps: Sequence[int] = ()) -> Verdict:
        self.count += 1
        performed = tuple(steps or range(4))
        fails = self.needed in perturbations and self.steps <= set(performed)
        return Verdict(RunResult(tuple(perturbations), steps=performed), (MISSING,) if fails else ())


KILL, FAIL = Perturbation(PerturbationKind.KILL_AFTER, CREATE), Perturbation(PerturbationKind.FAIL, CREATE, code=500)


async def test_shrinking_keeps_what_the_finding_needs() -> None:
    runs = FailingRuns(KILL, {1, 3})
    shrunk = await shrink(runs, await runs.run([FAIL, KILL]), steps=4)
    assert shrunk.perturbations == (KILL,)
    assert shrunk.result.steps == (1, 3)
    assert shrunk.findings == (MISSING,)


async def test_shrinking_keeps_the_steps_of_perturbations_and_its_limit() -> None:
    deletion = Perturbation(PerturbationKind.DELETE_OWNED, step=2, target=ObjectRef("ConfigMap", "web", "default"))
    runs = FailingRuns(deletion, set())
    assert (await shrink(runs, await runs.run([deletion]), steps=4)).result.steps == (2,)
    runs = FailingRuns(KILL, {0})
    await shrink(runs, await runs.run([FAIL, KILL]), steps=4, limit=2)
    assert runs.count == 3

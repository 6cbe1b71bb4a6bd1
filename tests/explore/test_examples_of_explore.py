"""The operators of examples/explore: the bug of each is found with its class, and the fixed operators have none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from example_module import EXAMPLES

from pilothouse.explore import Outcome, PerturbationKind, Scenario, load_scenario
from pilothouse.explore.classify import BugClass, bugs
from pilothouse.explore.report import bug_page, reproduction, summary
from pilothouse.explore.runner import Explorer
from pilothouse.explore.shrink import shrink

FOLDER = EXAMPLES / "explore"
CLASSES = {
    "crash_between_writes": BugClass.CRASH_CONSISTENCY,
    "stale_restart": BugClass.STALENESS,
    "endless_status": BugClass.LIVELOCK,
    "false_status": BugClass.FALSE_STATUS,
    "duplicate_create": BugClass.NON_IDEMPOTENT_CREATE,
    "lost_update": BugClass.LOST_UPDATE,
    "missed_event": BugClass.MISSED_EVENT,
    "leaked_secret": BugClass.LEAK,
}
IN_PROCESS = ("crash_between_writes", "endless_status", "false_status")
"""Operators in the process of the test: a run takes a fraction of a second."""
KINDS = {
    "stale_restart": PerturbationKind.STALE_READ,
    "duplicate_create": PerturbationKind.LOSE_RESPONSE,
    "lost_update": PerturbationKind.CONCURRENT_WRITE,
    "missed_event": PerturbationKind.DELETE_OWNED,
    "leaked_secret": PerturbationKind.DOWN_DURING_STEP,
}
"""The only perturbations of programs, which pay for their own start in each run."""
MOST_RUNS = 4


def scenario_of(name: str, variant: str = "") -> Scenario:
    scenario = load_scenario(FOLDER / name / "explore.yaml")
    program = scenario.program
    if program.manager:
        program = replace(program, manager=f"{name}{variant}:manager")
    else:
        # A busy machine may pause a program for longer than the default.
        program = replace(program, command=(sys.executable, f"{name}{variant}.py"), quiet_for=1.0)
    scenario = replace(scenario, program=program, budget_seconds=3600.0)
    return replace(scenario, kinds=frozenset({KINDS[name]}), budget_runs=MOST_RUNS) if name in KINDS else scenario


async def explored(scenario: Scenario) -> Outcome:
    async with Explorer(scenario, jobs=1) as explorer:
        return await explorer.explore()


NAMES = [pytest.param(name, marks=() if name in IN_PROCESS else pytest.mark.slow) for name in CLASSES]


@pytest.mark.parametrize("name", NAMES)
async def test_the_bug_is_found_with_its_class(name: str) -> None:
    outcome = await explored(scenario_of(name))
    first, *_ = bugs(outcome) or pytest.fail(summary(outcome))
    assert first.classification.bug_class == CLASSES[name], bug_page(first, outcome.baseline.result)


@pytest.mark.parametrize("name", NAMES)
async def test_the_fixed_operator_has_no_bug(name: str) -> None:
    outcome = await explored(scenario_of(name, "_fixed"))
    assert not bugs(outcome), summary(outcome)
    assert outcome.verdicts


@pytest.mark.slow
async def test_the_same_seed_gives_the_same_verdicts() -> None:
    first, second = [await explored(scenario_of("crash_between_writes")) for _ in range(2)]
    assert _verdicts(first) == _verdicts(second)


def _verdicts(outcome: Outcome) -> list[tuple[object, ...]]:
    return [(*(one.id for one in verdict.perturbations), *verdict.findings) for verdict in outcome.verdicts]


@pytest.mark.slow
async def test_the_reproduction_fails_on_the_bug_and_passes_without(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER / "crash_between_writes", tmp_path / "example")
    scenario = load_scenario(folder / "explore.yaml")
    async with Explorer(scenario, jobs=1) as explorer:
        outcome = await explorer.explore()
        verdict = await shrink(explorer, bugs(outcome)[0].verdict, steps=len(scenario.steps))
    file = folder / "test_reproduction.py"
    file.write_text(reproduction(scenario, verdict, baseline=outcome.baseline.result))
    failed = _pytest(file)
    assert failed.returncode == 1, failed.stdout
    assert "ConfigMap default/orders" in failed.stdout
    shutil.copyfile(folder / "crash_between_writes_fixed.py", folder / "crash_between_writes.py")
    passed = _pytest(file)
    assert passed.returncode == 0, passed.stdout


def _pytest(file: Path) -> subprocess.CompletedProcess[str]:
    root = str(EXAMPLES.parent)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={file.parent}", file.name]
    environment = {**os.environ, "PYTHONPATH": root, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=file.parent, env=environment, capture_output=True, text=True, check=False)


def test_an_operator_with_a_bug_is_small_and_close_to_its_fixed_variant() -> None:
    for name in CLASSES:
        buggy, fixed = (set((FOLDER / name / f"{name}{one}.py").read_text().splitlines()) for one in ("", "_fixed"))
        assert len(buggy) <= 60
        assert len(buggy ^ fixed) <= 36


def test_the_readme_names_every_example() -> None:
    text = (FOLDER / "README.md").read_text()
    folders = {folder.name for folder in FOLDER.iterdir() if (folder / "explore.yaml").exists()}
    assert folders == {*CLASSES, "sample_controller"}
    assert all(f"`{name}`" in text for name in folders)

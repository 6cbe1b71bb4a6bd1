"""Exploration in a test: the fixture `pilothouse_explore` of the pytest plugin calls `explore_file`."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pilothouse.explore.model import Outcome
from pilothouse.explore.oracles import judge_baseline
from pilothouse.explore.runner import Explorer
from pilothouse.explore.scenario import Scenario, load_scenario
from pilothouse.machinery.platform import new_event_loop


def explore_file(file: Path, *, whole: bool) -> Outcome:
    """Explore the scenario of the file, in a thread with its own event loop; without `whole`, only undisturbed.

    Raises AssertionError with one page for each bug, ScenarioError.
    """
    scenario = load_scenario(file)
    with ThreadPoolExecutor(1) as thread:
        outcome, text = thread.submit(_run, scenario, whole).result()
    if outcome.failures or outcome.baseline.findings:
        raise AssertionError(text)
    return outcome


def _run(scenario: Scenario, whole: bool) -> tuple[Outcome, str]:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_explore(scenario, whole))


async def _explore(scenario: Scenario, whole: bool) -> tuple[Outcome, str]:
    from pilothouse.explore.classify import bugs
    from pilothouse.explore.report import bug_page, summary

    async with Explorer(scenario) as explorer:
        if whole:
            outcome = await explorer.explore()
        else:
            learned = await explorer.learned()
            outcome = Outcome(scenario.name, judge_baseline(scenario, learned.baseline))
    pages = [bug_page(bug, outcome.baseline.result) for bug in bugs(outcome)]
    return outcome, "\n".join([*pages, summary(outcome)])

"""Exploration: perturbed runs per second and core, and the bugs of examples/explore with their whole plans.

    python benchmarks/explore.py [--speed] [--only NAME]

Each example runs on two clusters in the default order: the operator with the bug for two minutes, the fixed operator
until the plan is done. Processor time is of the explorer and of the operators.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import resource
import time
from dataclasses import dataclass, replace
from pathlib import Path

from pilothouse.explore import Explorer, Scenario, Verdict, load_scenario
from pilothouse.explore.classify import bugs
from pilothouse.machinery.platform import new_event_loop

EXAMPLES = Path(__file__).parent.parent / "examples" / "explore"
SMALL = "crash_between_writes"
"""Operator in the process of the explorer: one kind, two writes."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure explorations.")
    parser.add_argument("--only", metavar="NAME", help="explore one example")
    parser.add_argument("--speed", action="store_true", help="measure the speed alone")
    parsed = parser.parse_args()
    logging.getLogger("pilothouse").addHandler(logging.NullHandler())
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        if not parsed.only:
            runner.run(print_speed())
        if not parsed.speed:
            names = [parsed.only] if parsed.only else sorted(one.name for one in EXAMPLES.glob("*") if is_example(one))
            runner.run(print_examples(names))


def is_example(folder: Path) -> bool:
    return (folder / f"{folder.name}_fixed.py").exists()


async def print_speed() -> None:
    """Print the rate of whole explorations by one core, without the start of the server and the undisturbed runs."""
    scenario = variant(SMALL, "_fixed")
    async with Explorer(scenario) as explorer:
        await explorer.explore()
        began, runs = time.process_time(), 0
        for seed in range(3):
            explorer.scenario = replace(scenario, seed=seed)
            runs += len((await explorer.explore()).verdicts)
        spent = time.process_time() - began
    print(f"{SMALL}: {runs / spent:.1f} perturbed runs per second and core ({1000 * spent / runs:.0f} ms each)\n")


def variant(name: str, suffix: str) -> Scenario:
    """Return the scenario of an example, for the operator with the bug or for the fixed operator."""
    scenario = load_scenario(EXAMPLES / name / "explore.yaml")
    program = scenario.program
    if program.manager:
        return replace(scenario, program=replace(program, manager=f"{name}{suffix}:manager"))
    return replace(scenario, program=replace(program, command=("python", f"{name}{suffix}.py")))


async def print_examples(names: list[str]) -> None:
    print("| example | class of the bug | found after | fixed variant |")
    print("|---|---|---|---|")
    for name in names:
        buggy = await explored(variant(name, ""))
        fixed = await explored(replace(variant(name, "_fixed"), budget_seconds=3600))
        print(f"| `{name}` | {buggy.found} | {buggy.first} | {fixed.found} in {fixed.runs} |", flush=True)


@dataclass(frozen=True)
class Explored:
    found: str
    """Classes of the bugs."""
    first: str
    """Runs and times until the first bug."""
    runs: str


async def explored(scenario: Scenario) -> Explored:
    began, spent, runs = time.monotonic(), processor_time(), 0
    first = ""

    def moment() -> str:
        processor, real = processor_time() - spent, time.monotonic() - began
        return f"{runs} runs, {processor:.0f} s of processor time ({real:.0f} s)"

    def note(verdict: Verdict) -> None:
        nonlocal first, runs
        runs += 1
        if not verdict.passed and not first:
            first = moment()

    async with Explorer(scenario, jobs=2) as explorer:
        outcome = await explorer.explore(note)
    classes = ", ".join(bug.classification.bug_class.value for bug in bugs(outcome))
    return Explored(classes or "nothing found", first or moment(), f"{moment()}, {outcome.left} not run")


def processor_time() -> float:
    """Return the processor time of this process and of its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(os.times()[:2]) + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()

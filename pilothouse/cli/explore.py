"""`pilothouse explore explore.yaml`: find the bugs of an operator by perturbed runs of a scenario."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.cli.arguments import CommandParser

if TYPE_CHECKING:
    from pilothouse.explore.model import Verdict
    from pilothouse.explore.scenario import Scenario

_FAILED, _INVALID = 1, 2


def main(arguments: Sequence[str]) -> int:
    """Return 0 if no run fails, 1 if a run fails, and 2 if the scenario cannot run."""
    parsed = _parser().parse_args(arguments)
    from pilothouse.explore.scenario import SCHEMA, ScenarioError, load_scenario
    from pilothouse.machinery.platform import new_event_loop
    from pilothouse.testing.running import StartError

    if parsed.schema:
        import orjson

        from pilothouse.explore.report import REPORT_SCHEMA

        schema = SCHEMA if parsed.schema == "scenario" else REPORT_SCHEMA
        print(orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode())
        return 0
    if parsed.file is None:
        _parser().error("the path of an explore.yaml is required")
    try:
        scenario = _with_flags(load_scenario(parsed.file), parsed)
        logging.getLogger("pilothouse").addHandler(logging.NullHandler())  # a disturbed operator logs expected errors
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_explore(scenario, parsed))
    except (ScenarioError, StartError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return _INVALID


def _with_flags(scenario: Scenario, parsed: argparse.Namespace) -> Scenario:
    from pilothouse.machinery.durations import parse_duration

    changes = {"seed": parsed.seed, "budget_runs": parsed.runs}
    chosen = {name: value for name, value in changes.items() if value is not None}
    if parsed.time:
        chosen["budget_seconds"] = parse_duration(parsed.time) / 1e9
    return replace(scenario, **chosen)


async def _explore(scenario: Scenario, parsed: argparse.Namespace) -> int:
    from pilothouse.explore.classify import bugs
    from pilothouse.explore.report import bug_page, junit, reproduction, reproduction_name, summary, to_document
    from pilothouse.explore.runner import Explorer
    from pilothouse.explore.shrink import shrink

    async with Explorer(scenario, jobs=parsed.jobs, resume=parsed.resume) as explorer:
        if parsed.list:
            for one in (await explorer.plan()).perturbations:
                print(one.id)
            return 0
        outcome = await explorer.explore(_progress if sys.stderr.isatty() else lambda verdict: None)
        shrunk = []
        for number, bug in enumerate(bugs(outcome), 1):
            verdict = bug.verdict
            if verdict.perturbations and not parsed.no_shrink:
                verdict = await shrink(explorer, verdict, steps=len(scenario.steps))
                bug = replace(bug, verdict=verdict)
            shrunk.append(bug)
            baseline = (await explorer.learned(verdict.result.steps)).baseline
            print(bug_page(bug, baseline))
            if parsed.output is not None and verdict.perturbations:
                parsed.output.mkdir(parents=True, exist_ok=True)
                file = parsed.output / reproduction_name(scenario, number)
                text = reproduction(scenario, verdict, folder=parsed.output, baseline=baseline)
                file.write_text(text, encoding="utf-8")
                print(f"Reproduce: pytest {file}\n")
    print(summary(outcome))
    if parsed.junit is not None:
        parsed.junit.write_text(junit(outcome), encoding="utf-8")
    if parsed.json is not None:
        import orjson

        document = to_document(outcome, scenario, shrunk)
        parsed.json.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return _FAILED if outcome.failures or outcome.baseline.findings else 0


def _progress(verdict: Verdict) -> None:
    mark = "ok  " if verdict.passed else "FAIL"
    print(f"{mark} {', '.join(one.id for one in verdict.perturbations)}", file=sys.stderr)


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="pilothouse explore",
        description="Run a scenario of an operator again and again, each time with another disturbance: crashes, lost"
        " responses, stale caches, missed events, two leaders. Report the runs that end differently.",
        example="pilothouse explore explore.yaml --output reproductions",
    )
    parser.add_argument("file", type=Path, nargs="?", help="path of the explore.yaml")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of clusters in parallel (default: 1)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the order of the runs")
    parser.add_argument("--time", metavar="DURATION", help="time budget, such as 2m")
    parser.add_argument("--runs", type=int, metavar="N", help="maximum number of perturbed runs")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="file with the verdicts of earlier runs; is extended"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder for pytest files that reproduce the bugs")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write a JUnit report")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a JSON report, for the console")
    parser.add_argument("--list", action="store_true", help="print the plan without running it")
    parser.add_argument("--no-shrink", action="store_true", help="do not reduce failing runs")
    parser.add_argument(
        "--schema",
        nargs="?",
        const="scenario",
        choices=["scenario", "report"],
        help="print the JSON schema of explore.yaml, or of the JSON report",
    )
    return parser

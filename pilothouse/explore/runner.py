"""Explorer: learn the undisturbed run, plan perturbations, run them from the snapshot, judge each run.

Several clusters run in parallel in one process. A failing run counts only if a second run confirms the finding, so
that the same scenario and seed give the same verdicts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import orjson

from pilothouse.explore.cluster import ExploreCluster, clusters
from pilothouse.explore.model import Outcome, Perturbation, Verdict, from_json, to_json
from pilothouse.explore.operators import tracked_tasks
from pilothouse.explore.oracles import judge, judge_baseline
from pilothouse.explore.perturbations import Plan, plan
from pilothouse.explore.recording import Learned, learn
from pilothouse.explore.run import Run
from pilothouse.explore.scenario import Scenario, ScenarioError, load_scenario
from pilothouse.machinery.objects import Json

_LATER: Final = 5000.0
"""Virtual seconds between the two undisturbed runs, so that every time differs."""
OnVerdict = Callable[[Verdict], None]


class Explorer:
    """Explores one scenario, inside of `async with`."""

    def __init__(self, scenario: Scenario, *, jobs: int = 1, resume: Path | None = None) -> None:
        """`jobs` is the number of clusters. `resume` is a file with the verdicts of an earlier exploration; new
        verdicts are appended.
        """
        self.scenario = scenario
        self._jobs = jobs
        self._resume = resume
        self._opened = AsyncExitStack()
        self._free: asyncio.Queue[ExploreCluster] = asyncio.Queue()
        self._learned: dict[tuple[int, ...], Learned] = {}
        self._learning = asyncio.Lock()

    async def __aenter__(self) -> Explorer:
        await self._opened.__aenter__()
        try:
            running = await self._opened.enter_async_context(clusters(self.scenario, self._jobs))
            self._opened.enter_context(tracked_tasks())
        except BaseException:
            await self._opened.aclose()
            raise
        for cluster in running:
            self._free.put_nowait(cluster)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._opened.aclose()

    async def learned(self, steps: Sequence[int] = ()) -> Learned:
        """Return the undisturbed run of the steps (default: all) and its noise. Raises ScenarioError."""
        key = tuple(steps) or tuple(range(len(self.scenario.steps)))
        async with self._learning:
            if key not in self._learned:
                async with self._cluster() as cluster:
                    first = await Run(cluster, steps=key).perform()
                if first.failed_wait and not steps:
                    raise ScenarioError(f"the undisturbed run fails: {first.failed_wait}\n{first.output}")
                second = first
                if first.settled:
                    async with self._cluster() as cluster:  # the longest unused: another server, if there are several
                        await cluster.jump(_LATER)
                        second = await Run(cluster, steps=key).perform()
                self._learned[key] = learn(first, second)
        return self._learned[key]

    async def plan(self) -> Plan:
        """Return the perturbations of the scenario in the order of their runs."""
        return plan(self.scenario, await self.learned())

    async def run(self, perturbations: Sequence[Perturbation], steps: Sequence[int] = ()) -> Verdict:
        """Perform and judge one perturbed run. `steps` selects steps of the scenario; default: all."""
        learned = await self.learned(steps)
        async with self._cluster() as cluster:
            verdict = judge(self.scenario, learned, await Run(cluster, perturbations, steps).perform())
            if verdict.passed:
                return verdict
            again = judge(self.scenario, learned, await Run(cluster, perturbations, steps).perform())
        confirmed = {(one.oracle, one.object, one.name) for one in again.findings}
        findings = [one for one in verdict.findings if (one.oracle, one.object, one.name) in confirmed]
        return Verdict(verdict.result, tuple(findings))

    async def explore(self, on_verdict: OnVerdict = lambda verdict: None) -> Outcome:
        """Run the plan within the budget. `on_verdict` gets each verdict as soon as it is known."""
        began, learned = time.monotonic(), await self.learned()
        chosen = await self.plan()
        todo = list(chosen.perturbations)
        if self.scenario.budget_runs:
            todo = todo[: self.scenario.budget_runs]
        verdicts = {key: verdict for key, verdict in self._earlier().items() if key in {one.id for one in todo}}
        waiting = [one for one in todo if one.id not in verdicts]
        waiting.reverse()

        async def work() -> None:
            while waiting and time.monotonic() - began < self.scenario.budget_seconds:
                one = waiting.pop()
                verdict = await self.run([one])
                verdicts[one.id] = verdict
                self._keep(one, verdict)
                on_verdict(verdict)

        async with asyncio.TaskGroup() as group:
            for _ in range(self._jobs):
                group.create_task(work())
        done = [verdicts[one.id] for one in chosen.perturbations if one.id in verdicts]
        return Outcome(
            scenario=self.scenario.name,
            baseline=judge_baseline(self.scenario, learned.baseline),
            verdicts=tuple(done),
            planned=len(chosen.perturbations),
            skipped=chosen.skipped,
            left=len(chosen.perturbations) - len(done),
            noise=tuple(learned.noise.lines()),
            seed=self.scenario.seed,
            seconds=time.monotonic() - began,
        )

    @asynccontextmanager
    async def _cluster(self) -> AsyncIterator[ExploreCluster]:
        cluster = await self._free.get()
        try:
            yield cluster
        finally:
            self._free.put_nowait(cluster)

    def _earlier(self) -> dict[str, Verdict]:
        """Return the verdicts of the file to resume; an incomplete last line is ignored."""
        found: dict[str, Verdict] = {}
        if self._resume is not None and self._resume.exists():
            for line in self._resume.read_bytes().splitlines():
                with suppress(orjson.JSONDecodeError, KeyError, TypeError, ValueError):
                    entry = orjson.loads(line)
                    if entry["scenario"] == self.scenario.name and entry["seed"] == self.scenario.seed:
                        found[entry["id"]] = from_json(Verdict, entry["verdict"])
        return found

    def _keep(self, one: Perturbation, verdict: Verdict) -> None:
        if self._resume is not None:
            entry = {"scenario": self.scenario.name, "seed": self.scenario.seed, "id": one.id}
            with self._resume.open("ab") as file:
                file.write(orjson.dumps({**entry, "verdict": to_json(verdict)}) + b"\n")


async def reproduce(file: str | Path, perturbations: Sequence[Json], steps: Sequence[int] = ()) -> Verdict:
    """Run the scenario of explore.yaml with these perturbations (JSON form), and return the verdict.

    Raises ScenarioError, OSError.
    """
    scenario = load_scenario(Path(file))
    async with Explorer(scenario) as explorer:
        return await explorer.run([from_json(Perturbation, one) for one in perturbations], steps)

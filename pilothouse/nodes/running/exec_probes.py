"""Outcomes of exec probes, found by running the probes beside the command of their container in virtual time.

The command runs once for each container with exec probes, and the probes run whenever the command sleeps: until then
nothing can change. Both share one small budget, so the work does not depend on periods and thresholds. A result that
depends on a program or file that is not simulated is unknown, and counts as a success. After a command from outside
(`kubectl exec`), the probes run once more, on the files that the command has left.
"""

from __future__ import annotations

import posixpath
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.event_loop import yield_periodically
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, part
from pilothouse.nodes.containers.budget import Budget, Killed, Limits
from pilothouse.nodes.containers.container import ArgumentsTooLong, Container, expand
from pilothouse.nodes.containers.process import CollectedOutput, MeteredOutput, NoInput, Process
from pilothouse.nodes.containers.shell import CommandNotFound, run_command
from pilothouse.nodes.containers.words import NotSupported
from pilothouse.nodes.kubelet.host import Host
from pilothouse.nodes.pods.probes import exec_probes
from pilothouse.nodes.pods.state import ContainerState, PodState, containers_of
from pilothouse.nodes.pods.world import ProbeOutcome

Outcomes: TypeAlias = Mapping[tuple[str, str], tuple[ProbeOutcome, ...]]
"""(container, probe) → outcomes."""


@dataclass(frozen=True, slots=True)
class ExecProbes:
    """What is known about the exec probes of a pod."""

    outcomes: Outcomes = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    """Containers whose command is not simulated."""
    later: Mapping[str, tuple[int, Outcomes]] = field(default_factory=dict)
    """Container → its number of restarts, and its outcomes in this run, after a command from outside."""

    def now(self, state: PodState) -> Outcomes:
        """Return the outcomes for the current runs of the containers."""
        valid = (
            outcomes
            for name, (restarts, outcomes) in self.later.items()
            if name in state.containers and state.containers[name].restarts == restarts
        )
        return ChainMap(*(dict(outcomes) for outcomes in valid), dict(self.outcomes)) if self.later else self.outcomes

    def with_later(self, container: str, state: ContainerState, found: Mapping[str, ProbeOutcome]) -> ExecProbes:
        """Return a copy in which the outcomes of the container's current run are replaced from their time on."""
        restarts, before = self.later.get(container, (state.restarts, self.outcomes))
        before = before if restarts == state.restarts else self.outcomes
        changed: dict[tuple[str, str], tuple[ProbeOutcome, ...]] = {}
        for probe, outcome in found.items():
            past = [each for each in before.get((container, probe), ()) if each.after < outcome.after]
            if not past or past[-1].succeeds != outcome.succeeds:
                past = [*past[-_MOST_LOOKS:], outcome if past else replace(outcome, after=0.0)]
            changed[container, probe] = (replace(past[0], after=0.0), *past[1:])
        return replace(self, later={**self.later, container: (state.restarts, changed)})


_LIMITS: Final = Limits(steps=2000, held=4 << 20, written=1 << 20, processor_seconds=0.05, wall_seconds=30.0)
_MOST_LOOKS: Final = 64
"""Sleeps of a command at which its probes run."""
_SHOWN: Final = 1024
_UNKNOWN: Final = (CommandNotFound, NotSupported, ArgumentsTooLong)


async def find_outcomes(host: Host, pod: Json) -> ExecProbes:
    """Return the outcomes of the exec probes of all containers, from the start of each container on."""
    outcomes: dict[tuple[str, str], tuple[ProbeOutcome, ...]] = {}
    unknown: set[str] = set()
    async for container in yield_periodically(containers_of(pod)):
        if not (probes := exec_probes(container.spec)):
            continue
        trial = _Trial(container.spec, probes)
        try:
            async with host.machine.process(_LIMITS) as budget:
                objects = await host.objects_for(pod, container.spec, budget)
                async with host.containers.start(pod, container.spec, objects, budget) as inside:
                    await trial.run(inside, budget)
                    if inside.has_unknown_programs or not trial.is_known:
                        unknown.add(container.name)
        except (ArgumentsTooLong, Killed):
            unknown.add(container.name)  # the outcomes so far are valid
        outcomes |= {(container.name, name): (*found,) for name, found in trial.outcomes.items() if found}
    return ExecProbes(outcomes, frozenset(unknown))


async def current_outcomes(
    host: Host, pod: Json, spec: Json, *, after: float, is_known: bool
) -> Mapping[str, ProbeOutcome]:
    """Run the probes on the files that commands from outside have left, `after` seconds after the container start."""
    trial = _Trial(spec, exec_probes(spec), now=after, is_known=is_known)
    found: dict[str, ProbeOutcome] = {}
    try:
        async with host.machine.process(_LIMITS) as budget:
            objects = await host.objects_for(pod, spec, budget)
            inside = await host.containers.enter(pod, spec, objects, budget)
            for name, probe in trial.probes.items():
                found[name] = await trial.probe(inside, probe, budget)
    except (ArgumentsTooLong, Killed):
        pass  # the outcomes so far are valid
    return found


class _TimedOut(Exception):
    """The probe takes longer than its timeout."""


class _Finished(Exception):
    """The command has slept often enough."""


@dataclass(slots=True)
class _Trial:
    """A run of a container's command with its probes."""

    spec: Json
    probes: Mapping[str, Json]
    now: float = 0.0
    """Seconds since the container start."""
    looks: int = 0
    is_known: bool = True
    """Whether every program of the command so far is simulated."""
    outcomes: dict[str, list[ProbeOutcome]] = field(default_factory=dict)

    async def run(self, container: Container, budget: Budget) -> None:
        """Run the command to its end. Raises ArgumentsTooLong or Killed."""
        words: list[str] = []
        for word in (*(self.spec.get("command") or ()), *(self.spec.get("args") or ())):
            await budget.spend(data=len(word), steps=0)
            words.append(expand(word, container.environment))

        async def sleep(seconds: float) -> None:
            await self._look(container, budget)
            self.now += seconds

        nowhere = MeteredOutput(CollectedOutput(_SHOWN), budget)
        try:
            if not self.spec.get("command"):
                raise CommandNotFound("the entry point of the image")
            await run_command(Process(words, container, NoInput(), nowhere, nowhere, sleep, budget))
        except (CommandNotFound, NotSupported):
            self.is_known = False
        except _Finished:
            return
        await self._look(container, budget)

    async def _look(self, container: Container, budget: Budget) -> None:
        """Run the probes, and keep changed results."""
        self.looks += 1
        if self.looks > _MOST_LOOKS:
            raise _Finished
        for name, probe in self.probes.items():
            outcome = await self.probe(container, probe, budget)
            found = self.outcomes.setdefault(name, [])
            if found and found[-1].after == outcome.after:
                found.pop()
            if not found or found[-1].succeeds != outcome.succeeds:
                found.append(replace(outcome, after=outcome.after if found else 0.0))

    async def probe(self, container: Container, probe: Json, budget: Budget) -> ProbeOutcome:
        """Run the probe on the current files. Raises Killed."""
        command = part(probe, "exec").get("command") or [""]
        timeout, slept = float(probe.get("timeoutSeconds") or 1), 0.0
        await budget.spend(steps=1 + len(container.environment) // 64)
        inside = replace(container, environment={**container.environment}, has_unknown_programs=False)
        missed = inside.files.missed
        missed.clear()

        async def sleep(seconds: float) -> None:
            nonlocal slept
            slept += seconds
            if slept > timeout:
                raise _TimedOut

        written = CollectedOutput(_SHOWN)
        output = MeteredOutput(written, budget)
        try:
            code = await run_command(Process(command, inside, NoInput(), output, output, sleep, budget))
        except _TimedOut:
            text = f"command timed out: {quote(' '.join(command)[:_SHOWN])} timed out after {timeout:g}s"
            return ProbeOutcome(self.now, succeeds=False, output=text)
        except _UNKNOWN:
            return ProbeOutcome(self.now, succeeds=True)
        is_known = self.is_known and not container.has_unknown_programs
        if code and (inside.has_unknown_programs or (missed if not is_known else any(map(self._is_mounted, missed)))):
            return ProbeOutcome(self.now, succeeds=True)
        return ProbeOutcome(self.now, succeeds=not code, output=written.data.decode("utf-8", "replace"))

    def _is_mounted(self, path: str) -> bool:
        """Return whether the path is on a volume, to which other containers can write."""
        mounts = (posixpath.join("/", mount["mountPath"]).rstrip("/") for mount in self.spec.get("volumeMounts") or ())
        return any(path == mount or path.startswith(f"{mount}/") for mount in mounts)

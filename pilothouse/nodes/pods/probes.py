"""Results of probes, and the times at which they change a container.

A probe runs at its initial delay and then once per period. Its result changes at few moments, the outcomes of a
timeline; the times of the effects follow from the outcomes, without a step for each run:

    outcomes    0 s: fails, 12 s: succeeds    initialDelaySeconds 5, periodSeconds 10, successThreshold 1
    runs        5 s, 15 s, …
    effect      15 s: succeeds
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, TypeAlias

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.nodes.behavior.model import PROBES, READINESS, STARTUP, ContainerBehavior
from pilothouse.nodes.pods.ports import path_of, port_of_probe
from pilothouse.nodes.pods.state import Container, ContainerState
from pilothouse.nodes.pods.world import ProbeOutcome, World

_SHORTEST_PERIOD: Final = 0.001
_TOLERANCE: Final = 1e-9
_SUCCEEDS: Final = (ProbeOutcome(0.0, succeeds=True),)
_FAILS: Final = (ProbeOutcome(0.0, succeeds=False, output="simulated failure"),)

Timeline: TypeAlias = tuple[ProbeOutcome, ...]
"""Outcomes in the order of their times; the first is at 0."""


def exec_probes(spec: Json) -> dict[str, Json]:
    """Return the exec probes of a container by name."""
    return {name: probe for name in PROBES if (probe := spec.get(f"{name}Probe")) and probe.get("exec")}


@dataclass(frozen=True, slots=True)
class ProbeEffect:
    """A threshold is reached."""

    at: float
    """Seconds since the epoch."""
    succeeds: bool
    output: str = ""


@dataclass(frozen=True, slots=True)
class Probes:
    """The probes of a running container."""

    container: Container
    state: ContainerState
    behavior: ContainerBehavior
    world: World

    def started_at(self) -> float | None:
        """Return the time at which the container counts as started; None for never."""
        if self.container.probe(STARTUP) is None:
            return self.state.since
        first = next(self._effects(STARTUP, 0.0), None)
        return first.at if first is not None and first.succeeds else None

    def readiness(self) -> Iterator[ProbeEffect]:
        """Yield the times at which the container becomes ready or unready. It begins as unready."""
        if self.behavior.fails(READINESS):
            return
        if self.behavior.ready_after is not None:
            yield ProbeEffect(self.state.since + self.behavior.ready_after, succeeds=True)
        elif self.container.probe(READINESS) is None:
            yield ProbeEffect(self.state.since, succeeds=True)
        elif (started := self.started_at()) is not None:
            yield from self._effects(READINESS, started - self.state.since)

    def failure(self, name: str) -> ProbeEffect | None:
        """Return the failure of the startup or liveness probe that kills the container; None for never."""
        if self.container.probe(name) is None:
            return None
        started = self.state.since if name == STARTUP else self.started_at()
        if started is None:
            return None
        effects = self._effects(name, started - self.state.since)
        if name == STARTUP:
            first = next(effects, None)
            return first if first is not None and not first.succeeds else None
        return next((effect for effect in effects if not effect.succeeds), None)

    def _effects(self, name: str, begin: float) -> Iterator[ProbeEffect]:
        """Yield the effects of a probe that runs from `begin` seconds after the start of the container."""
        probe = self.container.probe(name) or {}
        scaled = self.world.config.scaled
        first, period = scaled(probe.get("initialDelaySeconds") or 0), scaled(probe.get("periodSeconds") or 10)
        period = max(period, _SHORTEST_PERIOD)
        outcomes = self._timeline(name, probe)
        ends = [*(outcome.after for outcome in outcomes[1:]), math.inf]
        for outcome, end in zip(outcomes, ends, strict=True):
            runs_before = math.ceil((max(outcome.after, begin, first) - first) / period - _TOLERANCE)
            repetitions = (
                (probe.get("successThreshold") or 1) - 1 if outcome.succeeds else probe.get("failureThreshold") or 3
            )
            at = first + (runs_before + repetitions) * period
            if at < end:
                yield ProbeEffect(self.state.since + at, outcome.succeeds, outcome.output)

    def _timeline(self, name: str, probe: Json) -> Timeline:
        if self.behavior.fails(name):
            return _FAILS
        if (action := probe.get("httpGet")) is not None:
            answer = self.behavior.http_answer(port_of_probe(self.container.spec, action), path_of(action))
            if answer is not None and not 200 <= answer.status < 400:
                output = f"HTTP probe failed with statuscode: {answer.status}"
                return (ProbeOutcome(0.0, succeeds=False, output=output),)
        if (action := probe.get("exec")) is not None:
            scripted = self.behavior.answer_to(action.get("command") or [])
            if scripted is not None:
                output = scripted.stdout + scripted.stderr
                return (ProbeOutcome(0.0, succeeds=not scripted.exit_code, output=output),)
            return self.world.probes.get((self.container.name, name)) or _SUCCEEDS
        return _SUCCEEDS

"""Shrink: reduce a failed run to the fewest perturbations and steps that still show the same finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pilothouse.explore.model import Perturbation, Verdict


class Runs(Protocol):
    """The part of an Explorer that shrinking needs."""

    async def run(self, perturbations: Sequence[Perturbation], steps: Sequence[int] = ()) -> Verdict:
        """Perform and judge one perturbed run. `steps` are indices of the steps to perform; default: all."""
        ...


async def shrink(runs: Runs, verdict: Verdict, *, steps: int, limit: int = 16) -> Verdict:
    """Return the smallest failed run that was found, with at most `limit` further runs.

    `steps` is the number of steps of the scenario. A smaller run counts if it violates one of the original oracles for
    the same object. Perturbations go first, from the last to the first; then steps, from the last to the first.
    """
    best, wanted = verdict, _signatures(verdict)
    performed = list(verdict.result.steps or range(steps))
    for perturbation in reversed(verdict.perturbations):
        fewer = [one for one in best.perturbations if one is not perturbation]
        if limit > 0 and fewer:
            limit -= 1
            smaller = await runs.run(fewer, steps=performed)
            best = smaller if _signatures(smaller) & wanted else best
    for step in reversed(performed.copy()):
        fewer_steps = [one for one in performed if one != step]
        if limit <= 0 or not fewer_steps or any(one.step == step for one in best.perturbations):
            continue
        limit -= 1
        smaller = await runs.run(best.perturbations, steps=fewer_steps)
        if _signatures(smaller) & wanted:
            best, performed = smaller, fewer_steps
    return best


def _signatures(verdict: Verdict) -> set[tuple[str, str, str]]:
    return {(finding.oracle, finding.object, finding.name) for finding in verdict.findings}

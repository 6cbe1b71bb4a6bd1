"""The figures as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster.model import Model, error_on_largest
from cluster.recorder import OBJECTIVES, Kind, percentile
from cluster.steps import Phase, Step

_FEW = 100
"""Of fewer requests the slowest stands for the 99th percentile."""


def report(name: str, steps: Sequence[Step], larger: Sequence[int], at_rest: float) -> Iterator[str]:
    yield f"### {name}\n"
    yield from resources(steps)
    yield ""
    yield from _latencies(steps)
    yield ""
    yield from _model(steps, larger, at_rest)
    for step in steps:
        for phase in (step.seeded, step.started, *step.phases):
            if phase.recorder.failures:
                yield f"\n{step.nodes} nodes, failures: {dict(phase.recorder.failures)}"


def resources(steps: Sequence[Step]) -> Iterator[str]:
    yield (
        "| nodes | pods/s | objects | watches | requests/s | events/s | MB/s | server's cores | generator's cores | MB "
        "| cores of others |"
    )
    yield "|---" * 11 + "|"
    for phase in (phase for step in steps for phase in step.phases):
        each = phase.seconds
        yield (
            f"| {phase.nodes:,} | {phase.pods / each:.3g} | {phase.objects:,} | {phase.watches:,} "
            f"| {phase.recorder.requests / each:,.0f} | {phase.recorder.events / each:,.0f} "
            f"| {phase.received / each / 1e6:.1f} | {phase.server / each:.3f} | {phase.generator / each:.3f} "
            f"| {phase.megabytes:,.0f} | {phase.others:.1f} |"
        )


def _latencies(steps: Sequence[Step]) -> Iterator[str]:
    """Of the phase in which pods come and go; lists of one node, which are made at its start, of the start."""
    yield (
        "| verb | resource | scope | objective | " + " | ".join(f"{step.nodes:,} nodes" for step in steps) + " | met |"
    )
    yield "|---" * (5 + len(steps)) + "|"
    yield "| | | | p99 in ms | " + " | ".join("p50 / p99 (requests)" for _ in steps) + " | |"
    for kind in sorted({kind for step in steps for kind in step.busy.recorder.seconds | step.started.recorder.seconds}):
        taken = [_of(step, kind) for step in steps]
        objective = OBJECTIVES[kind[2]]
        met = all(percentile(values, 0.99) <= objective for values in taken if values)
        cells = " | ".join(_cell(values) for values in taken)
        yield f"| {' | '.join(kind)} | {objective * 1000:,.0f} | {cells} | {'yes' if met else '**no**'} |"
    cells = " | ".join(_cell(step.busy.recorder.delays) for step in steps)
    yield f"| watch | pods | binding sent → event at the kubelet | | {cells} | |"


def _of(step: Step, kind: Kind) -> list[float]:
    return step.busy.recorder.seconds.get(kind) or step.started.recorder.seconds.get(kind, [])


def _cell(values: Sequence[float]) -> str:
    if not values:
        return "–"
    share = 0.99 if len(values) >= _FEW else 1.0
    return f"{percentile(list(values), 0.5) * 1000:.3g} / {percentile(list(values), share) * 1000:.3g} ({len(values)})"


def _model(steps: Sequence[Step], larger: Sequence[int], at_rest: float) -> Iterator[str]:
    phases = [phase for step in steps for phase in step.phases]
    points = [phase.measured for phase in phases]
    if len(steps) < 2:
        return
    model, error = Model.fit(points), error_on_largest(points)
    yield f"Processor time = {model.base:.3f} + {1e6 * model.node:.0f} µs × nodes + {1000 * model.pod:.1f} ms × pods/s."
    if error is not None:
        yield f"Made from the smaller steps alone it is off by {error:.0%} for the largest."
    last = steps[-1]
    a_object = (last.seeded.megabytes - at_rest) / last.seeded.objects
    a_node = (last.started.megabytes - last.seeded.megabytes) / max(last.nodes - _before(steps), 1)
    shares = f"{1000 * a_object:.1f} kB × objects + {1000 * a_node:.0f} kB × connected nodes"
    yield f"Memory = {at_rest:.0f} MB + {shares}.\n"
    yield "| nodes | pods/s | cores, model | cores, measured | MB, model | MB, measured at the end |"
    yield "|---" * 6 + "|"
    for phase in phases:
        memory = at_rest + a_object * phase.objects + a_node * phase.nodes
        yield _prediction(phase, model, memory)
    for nodes in larger:
        churn, objects = last.busy.churn / last.nodes * nodes, last.busy.objects / last.nodes * nodes
        memory = at_rest + a_object * objects + a_node * nodes
        yield f"| {nodes:,} | {churn:g} | {model.cores(nodes, churn):.2f} | not run | {memory:,.0f} | not run |"


def _before(steps: Sequence[Step]) -> int:
    return steps[-2].nodes if len(steps) > 1 else 0


def _prediction(phase: Phase, model: Model, memory: float) -> str:
    measured = phase.server / phase.seconds
    return (
        f"| {phase.nodes:,} | {phase.pods / phase.seconds:.3g} | {measured * (1 + model.error(phase.measured)):.3f} "
        f"({model.error(phase.measured):+.0%}) | {measured:.3f} "
        f"| {memory:,.0f} ({memory / phase.megabytes - 1:+.0%}) | {phase.megabytes:,.0f} |"
    )

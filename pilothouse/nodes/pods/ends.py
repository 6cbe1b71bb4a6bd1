"""Times of exit, startup and readiness of a running container."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, part
from pilothouse.nodes.behavior.model import LIVENESS, READINESS, STARTUP, ContainerBehavior
from pilothouse.nodes.pods.commands import FOREVER, known_end, shortest_run
from pilothouse.nodes.pods.containers import INIT, MAIN, Container
from pilothouse.nodes.pods.state import ContainerState
from pilothouse.nodes.pods.world import World

KILLED, OUT_OF_MEMORY = 137, "OOMKilled"
NOT_STARTED, START_ERROR = 128, "StartError"
SIGTERM = 143


@dataclass(frozen=True, slots=True)
class End:
    at: float
    exit_code: int
    reason: str
    failed_probe: str = ""
    """The probe that caused the kill."""


def reason_of(exit_code: int) -> str:
    return "Error" if exit_code else "Completed"


def is_finite(container: Container, pod: Json) -> bool:
    """Return whether the container is expected to exit."""
    policy = part(pod, "spec").get("restartPolicy") or "Always"
    return container.kind == INIT or (container.kind == MAIN and policy != "Always")


def next_end(container: Container, state: ContainerState, pod: Json, world: World) -> End | None:
    """Return the earliest exit of a running container; None if it keeps running."""
    behavior = world.behavior(container.name)
    ends = [*_own_end(container, state, pod, behavior, world), *_killed_by_probes(container, state, behavior, world)]
    return min(ends, key=lambda end: end.at, default=None)


def started_at(container: Container, state: ContainerState, behavior: ContainerBehavior, world: World) -> float | None:
    """Return the time at which the container counts as started; None for never."""
    probe = container.probe(STARTUP)
    if probe is None:
        return state.since
    return None if behavior.fails(STARTUP) else state.since + _succeeds_after(probe, world)


def ready_at(container: Container, state: ContainerState, behavior: ContainerBehavior, world: World) -> float | None:
    """Return the time at which a started container becomes ready; None for never."""
    probe = container.probe(READINESS)
    if behavior.fails(READINESS):
        return None
    if behavior.ready_after is not None:
        return state.since + behavior.ready_after
    return state.since if probe is None else state.since + _succeeds_after(probe, world)


def crash_back_off(crashes: int, world: World) -> float:
    """Return the scaled back-off after so many crashes."""
    return world.config.scaled(crash_back_off_seconds(crashes))


def crash_back_off_seconds(crashes: int) -> float:
    """Return a kubelet's back-off: 0 after the first crash, then 10 s, doubled up to five minutes."""
    return 0.0 if crashes <= 1 else min(10.0 * 2 ** min(crashes - 2, 10), 300.0)


def _own_end(
    container: Container, state: ContainerState, pod: Json, behavior: ContainerBehavior, world: World
) -> Iterator[End]:
    told = behavior.exit_after is not None or behavior.exit_code is not None or behavior.oom_killed
    if told and (behavior.exit_times is None or state.restarts < behavior.exit_times):
        after = world.delay if behavior.exit_after is None else behavior.exit_after
        code = KILLED if behavior.oom_killed else behavior.exit_code or 0
        yield End(state.since + after, code, OUT_OF_MEMORY if behavior.oom_killed else reason_of(code))
    elif (exceeded := world.exceeded.get(container.name)) is not None:
        yield End(state.since + exceeded.after, KILLED, OUT_OF_MEMORY if exceeded.out_of_memory else reason_of(KILLED))
    elif (known := known_end(container.spec)) is not None:
        if known.after != FOREVER:
            at = state.since + max(known.after, world.delay)
            yield End(at, known.exit_code, reason_of(known.exit_code))
    elif is_finite(container, pod) and (seconds := shortest_run(container.spec)) != FOREVER:
        yield End(state.since + max(seconds, world.delay), 0, reason_of(0))


def _killed_by_probes(
    container: Container, state: ContainerState, behavior: ContainerBehavior, world: World
) -> Iterator[End]:
    for name in (STARTUP, LIVENESS):
        probe = container.probe(name)
        if probe is None or not behavior.fails(name):
            continue
        failures = (probe.get("periodSeconds") or 10) * (probe.get("failureThreshold") or 3)
        after = world.config.scaled((probe.get("initialDelaySeconds") or 0) + failures)
        yield End(state.since + max(after, world.delay), KILLED, "Error", name)


def _succeeds_after(probe: Json, world: World) -> float:
    again = (probe.get("periodSeconds") or 10) * ((probe.get("successThreshold") or 1) - 1)
    return world.config.scaled((probe.get("initialDelaySeconds") or 0) + again)

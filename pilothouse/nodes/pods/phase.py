"""Pod phase from container states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pilothouse.machinery.objects import Json
from pilothouse.nodes.pods.containers import EPHEMERAL, INIT, MAIN, SIDECAR, Container, restarts_after
from pilothouse.nodes.pods.state import RUNNING, TERMINATED, ContainerState

PENDING, RUNS, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
ENDED = (SUCCEEDED, FAILED)


def phase_of(
    pod: Json, containers: Sequence[Container], states: Mapping[str, ContainerState], *, terminal: bool
) -> str:
    """`terminal`: no container will start any more, regardless of policies."""
    if any(each.kind == INIT and has_failed(each, pod, states) for each in containers):
        return FAILED
    if _is_pending(containers, states):
        return PENDING
    if any(states[each.name].stage == RUNNING for each in containers if each.kind in (SIDECAR, MAIN)):
        return RUNS
    mains = [each for each in containers if each.kind == MAIN]
    if not terminal and not all(has_ended(each, pod, states) for each in mains):
        return RUNS
    return SUCCEEDED if all(exit_code_of(states[each.name]) == 0 for each in mains) else FAILED


def has_ended(container: Container, pod: Json, states: Mapping[str, ContainerState]) -> bool:
    """Return whether the container has exited for good."""
    ended = states[container.name].ended
    return ended is not None and not restarts_after(container, pod, ended.exit_code)


def has_failed(container: Container, pod: Json, states: Mapping[str, ContainerState]) -> bool:
    """Return whether the container has failed for good."""
    return has_ended(container, pod, states) and exit_code_of(states[container.name]) != 0


def exit_code_of(state: ContainerState) -> int | None:
    ended = state.ended or state.last
    return None if ended is None else ended.exit_code


def is_initialized(container: Container, state: ContainerState) -> bool:
    """Return whether the following containers may start."""
    return state.started if container.kind == SIDECAR else state.ended is not None and state.ended.exit_code == 0


def _is_pending(containers: Sequence[Container], states: Mapping[str, ContainerState]) -> bool:
    begun = any(each.kind == MAIN and states[each.name].since for each in containers)
    for each in containers:
        state = states[each.name]
        if each.kind == EPHEMERAL:
            continue
        never_ran = state.stage not in (RUNNING, TERMINATED) and state.last is None
        if each.kind == MAIN and never_ran:
            return True
        if each.kind != MAIN and not begun and not is_initialized(each, state):
            return True
    return False

"""Pod conditions set by the kubelet, with its reasons and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pilothouse.kinds.conditions import Condition
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, items
from pilothouse.nodes.pods.containers import EPHEMERAL, INIT, MAIN, SIDECAR, Container
from pilothouse.nodes.pods.phase import FAILED, SUCCEEDED, is_initialized
from pilothouse.nodes.pods.resize import PENDING
from pilothouse.nodes.pods.state import ContainerState, PodState

_ENDED_REASONS = {FAILED: "PodFailed", SUCCEEDED: "PodCompleted"}

States = Mapping[str, ContainerState]


def conditions_of(pod: Json, containers: Sequence[Container], state: PodState, phase: str) -> Iterator[Condition]:
    """Yield the conditions in a kubelet's order."""
    if state.resize_problem:
        yield _condition(PENDING, holds=True, reason="Infeasible", message=state.resize_problem)
    yield _condition("PodReadyToStartContainers", holds=state.has_sandbox and not state.phase)
    yield _initialized(containers, state.containers, phase)
    containers_ready = _containers_ready(containers, state.containers, phase)
    yield _ready(pod, containers_ready)
    yield containers_ready
    yield _condition("PodScheduled", holds=True)


def _condition(kind: str, *, holds: bool, reason: str = "", message: str = "") -> Condition:
    return Condition(kind, "True" if holds else "False", reason, message)


def _initialized(containers: Sequence[Container], states: States, phase: str) -> Condition:
    kind = "Initialized"
    if phase == SUCCEEDED:
        return _condition(kind, holds=True, reason="PodCompleted")
    if any(each.kind == MAIN and (states[each.name].runs or states[each.name].ended) for each in containers):
        return _condition(kind, holds=True)
    first = [each for each in containers if each.kind in (INIT, SIDECAR)]
    incomplete = [each.name for each in first if not is_initialized(each, states[each.name])]
    if not incomplete:
        return _condition(kind, holds=True)
    message = f"containers with incomplete status: {_shown(incomplete)}"
    return _condition(kind, holds=False, reason="ContainersNotInitialized", message=message)


def _containers_ready(containers: Sequence[Container], states: States, phase: str) -> Condition:
    kind = "ContainersReady"
    if phase in _ENDED_REASONS:
        return _condition(kind, holds=False, reason=_ENDED_REASONS[phase])
    unready = [each.name for each in containers if each.kind not in (INIT, EPHEMERAL) and not states[each.name].ready]
    if not unready:
        return _condition(kind, holds=True)
    message = f"containers with unready status: {_shown(unready)}"
    return _condition(kind, holds=False, reason="ContainersNotReady", message=message)


def _ready(pod: Json, containers_ready: Condition) -> Condition:
    if containers_ready.status != "True":
        return Condition("Ready", "False", containers_ready.reason, containers_ready.message)
    missing = list(_closed_gates(pod))
    if missing:
        return _condition("Ready", holds=False, reason="ReadinessGatesNotReady", message=", ".join(missing))
    return _condition("Ready", holds=True)


def _closed_gates(pod: Json) -> Iterator[str]:
    said = {each["type"]: each.get("status") for each in items(pod, "status", "conditions")}
    for gate in items(pod, "spec", "readinessGates"):
        kind = gate["conditionType"]
        if kind not in said:
            yield f"corresponding condition of pod readiness gate {quote(kind)} does not exist."
        elif said[kind] != "True":
            yield f'the status of pod readiness gate {quote(kind)} is not "True", but {said[kind]}'


def _shown(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"

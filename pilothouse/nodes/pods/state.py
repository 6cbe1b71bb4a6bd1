"""Containers of a pod, their states, and the phase of the pod. Times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, part

INIT, SIDECAR, MAIN, EPHEMERAL = "init", "sidecar", "main", "ephemeral"

_PREFIXES = {INIT: "initContainers", SIDECAR: "initContainers", MAIN: "containers", EPHEMERAL: "ephemeralContainers"}

WAITING, RUNNING, TERMINATED = "waiting", "running", "terminated"
CONTAINER_CREATING, POD_INITIALIZING = "ContainerCreating", "PodInitializing"
ERR_IMAGE_PULL, IMAGE_PULL_BACK_OFF = "ErrImagePull", "ImagePullBackOff"
ERR_IMAGE_NEVER_PULL, INVALID_IMAGE_NAME = "ErrImageNeverPull", "InvalidImageName"
CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
CREATE_CONTAINER_CONFIG_ERROR = "CreateContainerConfigError"
PENDING, RUNS, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
ENDED = (SUCCEEDED, FAILED)


@dataclass(frozen=True, slots=True)
class Container:
    name: str
    kind: str
    spec: Json

    @property
    def field_path(self) -> str:
        return f"spec.{_PREFIXES[self.kind]}{{{self.name}}}"

    @property
    def image(self) -> str:
        image: str = self.spec.get("image") or ""
        return image

    def probe(self, name: str) -> Json | None:
        probe: Json | None = self.spec.get(f"{name}Probe")
        return probe


def containers_of(pod: Json) -> Iterator[Container]:
    """Yield all containers in start order."""
    spec: dict[str, Any] = pod.get("spec") or {}
    for container in spec.get("initContainers") or ():
        yield Container(container["name"], SIDECAR if container.get("restartPolicy") == "Always" else INIT, container)
    for container in spec.get("containers") or ():
        yield Container(container["name"], MAIN, container)
    for container in spec.get("ephemeralContainers") or ():
        yield Container(container["name"], EPHEMERAL, container)


def restarts_after(container: Container, pod: Json, exit_code: int) -> bool:
    """Return whether the container restarts after this exit, by its own rules and policy, or by the pod's."""
    if container.kind == SIDECAR:
        return True
    if container.kind == EPHEMERAL:
        return False
    for rule in container.spec.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if listed if codes.get("operator") == "In" else not listed:
            return bool(rule.get("action") in ("Restart", "RestartAllContainers"))
    policy = container.spec.get("restartPolicy") or part(pod, "spec").get("restartPolicy") or "Always"
    if policy == "Never":
        return False
    # A successful init container never restarts, regardless of the policy.
    return exit_code != 0 or (policy == "Always" and container.kind == MAIN)


@dataclass(frozen=True, slots=True)
class Termination:
    """The exit of a container."""

    exit_code: int
    reason: str
    message: str
    started: float
    finished: float
    restarts: int
    """Restart count before the exit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    stage: str = WAITING
    reason: str = ""
    """Waiting reason."""
    message: str = ""
    since: float = 0.0
    """Start of the current stage; 0 before the container's first turn."""
    restarts: int = 0
    crashes: int = 0
    """Consecutive exits without a stable run; determines the back-off."""
    pulls: int = 0
    """Number of failed image pulls."""
    started: bool = False
    ready: bool = False
    ended: Termination | None = None
    """The exit, if terminated."""
    last: Termination | None = None
    """The exit before the last restart."""

    @property
    def runs(self) -> bool:
        return self.stage == RUNNING


@dataclass(frozen=True, slots=True)
class Kill:
    """All containers must stop."""

    since: float
    reason: str = ""
    message: str = ""
    """Message of the failed pod; empty for deleted pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    start_time: float
    containers: Mapping[str, ContainerState] = field(default_factory=dict)
    kill: Kill | None = None
    phase: str = ""
    """Final phase, Succeeded or Failed; empty before."""
    has_sandbox: bool = False
    """Whether the pod has a sandbox and an address."""
    resize_problem: str = ""
    """Reason why the requested resources are infeasible."""


def phase_of(
    pod: Json, containers: Sequence[Container], states: Mapping[str, ContainerState], *, terminal: bool
) -> str:
    """`terminal`: no container will start any more, regardless of policies."""
    if any(container.kind == INIT and has_failed(container, pod, states) for container in containers):
        return FAILED
    if _is_pending(containers, states):
        return PENDING
    if any(states[container.name].stage == RUNNING for container in containers if container.kind in (SIDECAR, MAIN)):
        return RUNS
    mains = [container for container in containers if container.kind == MAIN]
    if not terminal and not all(has_ended(main, pod, states) for main in mains):
        return RUNS
    return SUCCEEDED if all(exit_code_of(states[main.name]) == 0 for main in mains) else FAILED


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
    begun = any(container.kind == MAIN and states[container.name].since for container in containers)
    for container in containers:
        state = states[container.name]
        if container.kind == EPHEMERAL:
            continue
        never_ran = state.stage not in (RUNNING, TERMINATED) and state.last is None
        if container.kind == MAIN and never_ran:
            return True
        if container.kind != MAIN and not begun and not is_initialized(container, state):
            return True
    return False

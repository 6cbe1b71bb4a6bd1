"""The pod state machine: the next state and its time, from pod, state and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata, part
from pilothouse.nodes.pods import pod_events, resize
from pilothouse.nodes.pods.ends import KILLED, SIGTERM, is_finite, reason_of
from pilothouse.nodes.pods.one_container import Moment, restarted_for_resize, step, terminated
from pilothouse.nodes.pods.pod_events import PodEvent
from pilothouse.nodes.pods.state import (
    CONTAINER_CREATING,
    ENDED,
    EPHEMERAL,
    FAILED,
    INIT,
    MAIN,
    POD_INITIALIZING,
    RUNNING,
    SIDECAR,
    TERMINATED,
    WAITING,
    Container,
    ContainerState,
    Kill,
    PodState,
    Termination,
    containers_of,
    has_ended,
    has_failed,
    is_initialized,
    phase_of,
)
from pilothouse.nodes.pods.world import World

DEADLINE = "DeadlineExceeded"
_DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
_NOT_LOCATED = ("ContainerStatusUnknown", "The container could not be located when the pod was terminated")


@dataclass(frozen=True, slots=True)
class Step:
    state: PodState
    due: float | None
    """Time of the next spontaneous transition."""
    events: tuple[PodEvent, ...]

    @property
    def has_ended(self) -> bool:
        return self.state.phase in ENDED


def begin(pod: Json, now: float) -> PodState:
    """Return the initial state of a pod."""
    reason = POD_INITIALIZING if part(pod, "spec").get("initContainers") else CONTAINER_CREATING
    return PodState(start_time=now, containers={c.name: ContainerState(reason=reason) for c in containers_of(pod)})


def advance(pod: Json, state: PodState, world: World, now: float) -> Step:
    """Return the state of the pod at `now`. Idempotent."""
    if state.phase in ENDED:
        return Step(state, None, ())
    return _Turn(pod, state, world, now).run()


class _Turn:
    def __init__(self, pod: Json, state: PodState, world: World, now: float) -> None:
        self._pod, self._state, self._world, self._now = pod, state, world, now
        self._containers = list(containers_of(pod))
        waiting = ContainerState(reason=CONTAINER_CREATING)
        self._states = {container.name: state.containers.get(container.name, waiting) for container in self._containers}
        self._kill = state.kill
        self._moment = Moment(pod, world, now)

    def run(self) -> Step:
        self._see_whether_to_kill()
        if self._kill is None:
            self._go_on()
        if self._kill is not None:
            self._stop_all(self._kill)
        elif self._is_winding_down():
            finished = max((s.ended.finished for s in self._states.values() if s.ended is not None), default=self._now)
            running = [sidecar for sidecar in self._of(SIDECAR) if self._states[sidecar.name].runs]
            if running and self._moment.has_come(finished + self._world.delay):
                self._stop(running, lambda container: 0)
        stopped = self._kill is not None and not any(state.runs for state in self._states.values())
        phase = phase_of(self._pod, self._containers, self._states, terminal=stopped)
        if stopped and (phase not in ENDED or (self._kill is not None and self._kill.reason)):
            phase = FAILED
        sidecar_runs = any(self._states[sidecar.name].runs for sidecar in self._of(SIDECAR))
        ended = phase in ENDED and not sidecar_runs
        state = PodState(
            start_time=self._state.start_time,
            containers=self._states,
            kill=self._kill,
            phase=phase if ended else "",
            has_sandbox=self._state.has_sandbox or any(state.stage == RUNNING for state in self._states.values()),
            resize_problem=self._resize(),
        )
        return Step(state, None if ended else self._moment.due, tuple(self._moment.events))

    def _see_whether_to_kill(self) -> None:
        if self._kill is not None:
            return
        if is_deleting(self._pod):
            self._kill = Kill(self._now)
        elif (refusal := self._world.refusal) is not None:
            self._kill = Kill(self._now, refusal.reason, f"Pod was rejected: {refusal.message}")
            self._moment.record(pod_events.refused(refusal.reason, refusal.message))
        elif (limit := part(self._pod, "spec").get("activeDeadlineSeconds")) is not None:
            at = self._state.start_time + limit
            if self._moment.has_come(at):
                self._kill = Kill(self._now, DEADLINE, _DEADLINE_MESSAGE)
                self._moment.record(pod_events.deadline_exceeded(_DEADLINE_MESSAGE))

    def _go_on(self) -> None:
        """Advance all containers; several may start at the same moment."""
        have_begun = self._have_begun()
        are_initialized = True  # over the init containers and sidecars so far; keeps the loop linear
        is_resized = resize.is_resized(self._pod) and not resize.infeasible(self._pod, self._world.allocatable)
        for container in self._containers:
            state = self._states[container.name]
            if state.stage == WAITING and not state.since:
                if not self._may_start(container, have_begun=have_begun, are_initialized=are_initialized):
                    are_initialized = are_initialized and container.kind not in (INIT, SIDECAR)
                    continue
                state = replace(state, since=self._now)
                have_begun = have_begun or container.kind == MAIN
            if is_resized and state.runs and resize.requires_restart(self._pod, container, state.restarts):
                state = restarted_for_resize(self._moment, container, state)
            self._states[container.name] = state = step(self._moment, container, state)
            if container.kind in (INIT, SIDECAR):
                are_initialized = are_initialized and is_initialized(container, state)

    def _may_start(self, container: Container, *, have_begun: bool, are_initialized: bool) -> bool:
        """`have_begun`: a main container has started. `are_initialized`: all earlier init containers and sidecars are
        initialized."""
        if container.kind == EPHEMERAL:
            return self._state.has_sandbox
        obstacle = self._world.obstacle
        if obstacle is not None and not obstacle.container:
            return False
        # Restarting sidecars do not block main containers that have started before.
        return are_initialized or (container.kind == MAIN and have_begun)

    def _is_winding_down(self) -> bool:
        if any(has_failed(container, self._pod, self._states) for container in self._of(INIT)):
            return True
        return all(has_ended(container, self._pod, self._states) for container in self._of(MAIN))

    def _stop_all(self, kill: Kill) -> None:
        running = [container for container in self._containers if self._states[container.name].runs]
        if self._state.kill is None:
            for container in running:
                self._moment.record(pod_events.killing(container))
        if running and not self._moment.has_come(kill.since + self._time_to_stop(running)):
            return
        self._stop(running, self._exit_code_when_killed)
        have_begun = self._have_begun()
        for container in self._containers:
            self._states[container.name] = self._as_not_started(container, have_begun=have_begun)

    def _time_to_stop(self, running: Iterable[Container]) -> float:
        """Return the seconds to stop: prolonged by preStop sleeps, limited by the grace period."""
        sleeps = (part(c.spec, "lifecycle", "preStop", "sleep") for c in running)
        longest = self._world.config.scaled(max((sleep.get("seconds") or 0 for sleep in sleeps), default=0))
        grace = metadata(self._pod).get("deletionGracePeriodSeconds")
        whole = self._world.delay + longest
        return whole if grace is None else min(whole, float(grace))

    def _exit_code_when_killed(self, container: Container) -> int:
        """Return 0 for servers, which stop cleanly; finite work is interrupted and fails."""
        if self._kill is not None and self._kill.reason:
            return KILLED
        return SIGTERM if is_finite(container, self._pod) else 0

    def _stop(self, running: Iterable[Container], exit_code: Callable[[Container], int]) -> None:
        for container in running:
            code = exit_code(container)
            state = self._states[container.name]
            self._states[container.name] = terminated(state, code, reason_of(code), self._now)

    def _as_not_started(self, container: Container, *, have_begun: bool) -> ContainerState:
        """Return the final state of a container that waits in vain."""
        state = self._states[container.name]
        if state.stage != WAITING or (container.kind != MAIN and not state.since):
            return state
        if container.kind == MAIN and not have_begun:
            return state
        unknown = Termination(KILLED, *_NOT_LOCATED, 0.0, 0.0, state.restarts)
        return replace(state, stage=TERMINATED, reason="", message="", since=self._now, ended=state.last or unknown)

    def _resize(self) -> str:
        if self._kill is not None or not resize.is_resized(self._pod):
            return ""
        problem = resize.infeasible(self._pod, self._world.allocatable)
        if problem != self._state.resize_problem or not problem:
            self._moment.record(resize.resize_event(self._pod, problem))
        return problem

    def _have_begun(self) -> bool:
        """Return whether a main container has ever started."""
        return any(self._states[container.name].since for container in self._of(MAIN))

    def _of(self, kind: str) -> list[Container]:
        return [container for container in self._containers if container.kind == kind]

"""Transitions of one container, and the validation of its image name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json
from pilothouse.nodes.behavior.model import READINESS
from pilothouse.nodes.pods import ends, pod_events
from pilothouse.nodes.pods.pod_events import PodEvent
from pilothouse.nodes.pods.probes import Probes
from pilothouse.nodes.pods.state import (
    CRASH_LOOP_BACK_OFF,
    CREATE_CONTAINER_CONFIG_ERROR,
    ERR_IMAGE_PULL,
    IMAGE_PULL_BACK_OFF,
    INIT,
    INVALID_IMAGE_NAME,
    RUNNING,
    TERMINATED,
    WAITING,
    Container,
    ContainerState,
    Termination,
    restarts_after,
)
from pilothouse.nodes.pods.world import World

_CALM = 600.0
"""Seconds of uptime after which the back-off resets."""

_LONGEST_NAME, _LONGEST = 255, 600
_HOST_PART = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST = r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
_REFERENCE = re.compile(
    rf"(?P<domain>{_DOMAIN})/(?P<path>{_PART}(?:/{_PART})*)(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{{0,127}})?(?:@(?:{_DIGEST}))?"
)
_ID = re.compile(r"[a-f0-9]{64}")


class Moment:
    """The present time: transitions due by now happen; the earliest later one is recorded."""

    def __init__(self, pod: Json, world: World, now: float) -> None:
        self.pod, self.world, self.now = pod, world, now
        self.due: float | None = None
        self.events: list[PodEvent] = []

    def has_come(self, at: float) -> bool:
        if at <= self.now:
            return True
        self.due = at if self.due is None else min(self.due, at)
        return False

    def record(self, events: Iterable[PodEvent]) -> None:
        self.events.extend(events)


def step(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    """Return the state of the container at the present."""
    while True:  # terminates: no exited container restarts at the same moment
        after = _STEPS[state.stage](moment, container, state)
        if after is state:
            return state
        state = after


def terminated(state: ContainerState, exit_code: int, reason: str, now: float) -> ContainerState:
    ended = Termination(exit_code, reason, "", state.since, now, state.restarts)
    return ContainerState(
        stage=TERMINATED,
        since=now,
        restarts=state.restarts,
        crashes=state.crashes,
        ended=ended,
        last=state.last,
    )


def restarted_for_resize(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    """Return the container restarted for a resize that cannot be applied in place."""
    moment.record(pod_events.killed_for_resize(container))
    return _restart(moment, container, terminated(state, 0, ends.reason_of(0), moment.now))


def _wait(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    world = moment.world
    if state.reason == CRASH_LOOP_BACK_OFF:
        return _restart(moment, container, state) if _back_off_is_over(moment, state) else state
    if state.reason == ERR_IMAGE_PULL:
        return _back_off_pulling(moment, container, state) if moment.has_come(state.since + world.delay) else state
    if state.reason == IMAGE_PULL_BACK_OFF:
        wait = world.config.scaled(min(10.0 * 2 ** min(state.pulls - 1, 10), 300.0))
        return _create(moment, container, state) if moment.has_come(state.since + wait) else state
    if state.reason == INVALID_IMAGE_NAME:
        return state if problem_with(container.image) else _create(moment, container, state)
    if state.reason == CREATE_CONTAINER_CONFIG_ERROR:
        return state if _is_blocked(moment, container) else _create(moment, container, state)
    start_after = world.behavior(container.name).start_after
    takes = world.delay if start_after is None else start_after
    return _create(moment, container, state) if moment.has_come(state.since + takes) else state


def _create(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    if problem := problem_with(container.image):
        moment.record(pod_events.image_has_no_name(container, problem))
        return replace(state, reason=INVALID_IMAGE_NAME, message=problem, since=moment.now)
    error = moment.world.behavior(container.name).image_pull_error
    if error:
        moment.record(pod_events.pull_failed(container, error))
        pulls = state.pulls + 1
        return replace(state, reason=ERR_IMAGE_PULL, message=error, since=moment.now, pulls=pulls)
    moment.record(pod_events.pulled(container))
    obstacle = moment.world.obstacle
    if obstacle is not None and _is_blocked(moment, container):
        moment.record(pod_events.config_failed(container, obstacle.message))
        return replace(state, reason=CREATE_CONTAINER_CONFIG_ERROR, message=obstacle.message, since=moment.now)
    return _start(moment, container, state)


def _is_blocked(moment: Moment, container: Container) -> bool:
    obstacle = moment.world.obstacle
    return obstacle is not None and obstacle.container == container.name


def _back_off_pulling(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    moment.record(pod_events.pull_backs_off(container))
    message = f'Back-off pulling image "{container.image}": {ERR_IMAGE_PULL}: {state.message}'
    return replace(state, reason=IMAGE_PULL_BACK_OFF, message=message, since=moment.now)


def _start(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    if error := moment.world.start_errors.get(container.name):
        moment.record(pod_events.start_failed(container, error))
        ended = Termination(ends.NOT_STARTED, ends.START_ERROR, error, 0.0, moment.now, state.restarts)
        return replace(
            terminated(state, ends.NOT_STARTED, ends.START_ERROR, moment.now), ended=ended, crashes=state.crashes + 1
        )
    moment.record(pod_events.started(container))
    last, restarts, crashes = state.last, state.restarts, state.crashes
    return ContainerState(stage=RUNNING, since=moment.now, restarts=restarts, crashes=crashes, last=last)


def _restart(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    moment.record(pod_events.pulled(container))
    return _start(moment, container, replace(state, restarts=state.restarts + 1, last=state.ended or state.last))


def _run(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    end = ends.next_end(container, state, moment.pod, moment.world)
    if end is not None and moment.has_come(end.at):
        if end.failed_probe:
            moment.record(pod_events.probe_failed(container, end.failed_probe, end.output))
        ran_well = moment.now - state.since >= moment.world.config.scaled(_CALM)
        after = terminated(state, end.exit_code, end.reason, moment.now)
        return replace(after, crashes=1 if ran_well else state.crashes + 1)
    health = _health(moment, container, state)
    if (health.started, health.ready) == (state.started, state.ready):
        return state
    if state.ready and not health.ready:
        moment.record(pod_events.probe_failed(container, READINESS, health.output))
    return replace(state, started=health.started, ready=health.ready)


@dataclass(frozen=True, slots=True)
class _Health:
    started: bool
    ready: bool = False
    output: str = "simulated failure"
    """Output of the failed readiness probe."""


def _health(moment: Moment, container: Container, state: ContainerState) -> _Health:
    probes = Probes(container, state, moment.world.behavior(container.name), moment.world)
    at = probes.started_at()
    started = state.started or (at is not None and moment.has_come(at))
    health = _Health(started)
    if started and container.kind != INIT:
        for effect in probes.readiness():
            if not moment.has_come(effect.at):
                break
            health = _Health(started, effect.succeeds, effect.output or health.output)
    return health


def _end(moment: Moment, container: Container, state: ContainerState) -> ContainerState:
    ended = state.ended
    assert ended is not None
    if not restarts_after(container, moment.pod, ended.exit_code):
        return state
    if not moment.has_come(ended.finished + moment.world.delay):
        return state
    if state.crashes <= 1:
        return _restart(moment, container, state)
    moment.record(pod_events.restart_backs_off(container, moment.pod))
    message = pod_events.back_off_message(container, moment.pod, state.crashes)
    return replace(
        state, stage=WAITING, reason=CRASH_LOOP_BACK_OFF, message=message, since=moment.now, ended=None, last=ended
    )


def _back_off_is_over(moment: Moment, state: ContainerState) -> bool:
    finished = state.last.finished if state.last is not None else state.since
    return moment.has_come(finished + ends.crash_back_off(state.crashes, moment.world))


_STEPS = {WAITING: _wait, RUNNING: _run, TERMINATED: _end}


def problem_with(image: str) -> str:
    """Return the problem with the image name in a kubelet's words; empty if valid."""
    problem = _problem(image)
    if not problem:
        return ""
    return f"Failed to apply default image tag {quote(image)}: couldn't parse image name {quote(image)}: {problem}"


def _problem(image: str) -> str:
    if len(image) > _LONGEST:
        return "invalid reference format"
    if _ID.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    domain, rest = _split(image)
    name = rest.partition(":")[0]
    if name != name.lower():
        return f"invalid reference format: repository name ({name}) must be lowercase"
    match = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if match is None:
        return "invalid reference format"
    too_long = len(match["path"]) > _LONGEST_NAME
    return f"repository name must not be more than {_LONGEST_NAME} characters" if too_long else ""


def _split(image: str) -> tuple[str, str]:
    """Return (registry, rest); the default registry is docker.io."""
    domain, slash, rest = image.partition("/")
    if not slash:
        return "docker.io", f"library/{image}"
    is_domain = domain == "localhost" or any(char in domain for char in ".:") or domain != domain.lower()
    return (domain, rest) if is_domain else ("docker.io", image)

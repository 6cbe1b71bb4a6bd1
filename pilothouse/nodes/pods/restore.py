"""Restoring the state of a pod from its status, after a restart of the simulation."""

from __future__ import annotations

from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import parse_time
from pilothouse.nodes.pods.machine import begin
from pilothouse.nodes.pods.state import (
    CONTAINER_CREATING,
    CRASH_LOOP_BACK_OFF,
    ENDED,
    POD_INITIALIZING,
    RUNNING,
    SIDECAR,
    TERMINATED,
    Container,
    ContainerState,
    Kill,
    PodState,
    Termination,
    containers_of,
)

_LISTS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def restore(pod: Json, now: float) -> PodState:
    """Return the restored state; a pod without a kubelet status begins now."""
    status = pod.get("status") or {}
    phase = status.get("phase") or ""
    if not status.get("startTime"):
        state = begin(pod, now)
        return PodState(start_time=now, containers=state.containers, phase=phase if phase in ENDED else "")
    statuses = {
        container_status["name"]: container_status for name in _LISTS for container_status in status.get(name) or ()
    }
    containers = {
        container.name: _container(container, statuses.get(container.name), now) for container in containers_of(pod)
    }
    return PodState(
        start_time=_seconds(status["startTime"]),
        containers=containers,
        kill=Kill(now) if is_deleting(pod) else None,
        phase=phase if phase in ENDED else "",
        has_sandbox=bool(status.get("podIP")),
    )


def _container(container: Container, status: Json | None, now: float) -> ContainerState:
    if status is None:
        return ContainerState(reason=CONTAINER_CREATING)
    state, restarts = status.get("state") or {}, status.get("restartCount") or 0
    last = _termination((status.get("lastState") or {}).get(TERMINATED), restarts - 1)
    if running := state.get(RUNNING):
        since = _seconds(running.get("startedAt")) or now
        started = bool(status.get("started"))
        ready = bool(status.get("ready")) and (container.kind == SIDECAR or started)
        return ContainerState(
            stage=RUNNING, since=since, restarts=restarts, crashes=restarts, started=started, ready=ready, last=last
        )
    if (ended := _termination(state.get(TERMINATED), restarts)) is not None:
        since = ended.finished or now
        return ContainerState(
            stage=TERMINATED, since=since, restarts=restarts, crashes=restarts + 1, ended=ended, last=last
        )
    waiting = state.get("waiting") or {}
    # Restore a waiting container; a container in creation waits again.
    reason = waiting.get("reason") or CONTAINER_CREATING
    again = reason in (CONTAINER_CREATING, POD_INITIALIZING)
    return ContainerState(
        reason=reason,
        message=waiting.get("message") or "",
        since=0.0 if again else now,
        restarts=restarts,
        crashes=restarts + 1 if reason == CRASH_LOOP_BACK_OFF else restarts,
        pulls=0 if again else 1,
        last=last,
    )


def _termination(terminated: Json | None, restarts: int) -> Termination | None:
    if not terminated:
        return None
    return Termination(
        terminated.get("exitCode") or 0,
        terminated.get("reason") or "",
        terminated.get("message") or "",
        _seconds(terminated.get("startedAt")),
        _seconds(terminated.get("finishedAt")),
        max(restarts, 0),
    )


def _seconds(text: str | None) -> float:
    moment = parse_time(text) if text else None
    return moment.timestamp() if moment is not None else 0.0

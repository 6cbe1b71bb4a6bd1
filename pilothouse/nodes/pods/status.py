"""Rendering of the pod status, with a kubelet's conditions, reasons and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from pilothouse.client.events.event import timestamp
from pilothouse.kinds.conditions import Condition
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, items, metadata, part, uid_of
from pilothouse.nodes.pods.resize import RESIZE_PENDING, shown_resources, stored_status
from pilothouse.nodes.pods.state import (
    ENDED,
    EPHEMERAL,
    FAILED,
    INIT,
    MAIN,
    PENDING,
    RUNNING,
    SIDECAR,
    SUCCEEDED,
    WAITING,
    Container,
    ContainerState,
    PodState,
    Termination,
    containers_of,
    is_initialized,
    phase_of,
)

_LISTS = {
    "initContainerStatuses": (INIT, SIDECAR),
    "containerStatuses": (MAIN,),
    "ephemeralContainerStatuses": (EPHEMERAL,),
}

_ENDED_REASONS = {FAILED: "PodFailed", SUCCEEDED: "PodCompleted"}
States = Mapping[str, ContainerState]


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of the node and of the pod."""

    hosts: tuple[str, ...]
    pods: tuple[str, ...]


def new_status(pod: Json, state: PodState, addresses: Addresses, now: float) -> Json | None:
    """Return the new status, preserving fields of other writers; None if unchanged."""
    stored: Json = pod.get("status") or {}
    wanted = _status(pod, state, addresses)
    wanted["conditions"] = list(_conditions(pod, state, wanted["phase"], now))
    return None if all(stored.get(name) == value for name, value in wanted.items()) else {**stored, **wanted}


def container_id(pod: Json, name: str, restarts: int) -> str:
    """Return a deterministic container id."""
    return f"containerd://{sha256(f'{uid_of(pod)}/{name}/{restarts}'.encode()).hexdigest()}"


def _status(pod: Json, state: PodState, addresses: Addresses) -> Json:
    containers = list(containers_of(pod))
    status: Json = {"phase": _phase(pod, containers, state), "startTime": timestamp(state.start_time)}
    if generation := metadata(pod).get("generation"):
        status["observedGeneration"] = generation
    if addresses.hosts:
        status |= {"hostIP": addresses.hosts[0], "hostIPs": [{"ip": host} for host in addresses.hosts]}
    if addresses.pods and state.has_sandbox:
        status |= {"podIP": addresses.pods[0], "podIPs": [{"ip": address} for address in addresses.pods]}
    if state.kill is not None and state.kill.reason:
        status |= {"reason": state.kill.reason, "message": state.kill.message}
    for name, kinds in _LISTS.items():
        if statuses := [
            _container_status(pod, container, state) for container in containers if container.kind in kinds
        ]:
            status[name] = statuses
    return status


def _phase(pod: Json, containers: Sequence[Container], state: PodState) -> str:
    """Return the phase; a final phase is withheld while containers run."""
    if state.phase:
        return state.phase
    phase = phase_of(pod, containers, state.containers, terminal=False)
    return part(pod, "status").get("phase") or PENDING if phase in ENDED else phase


def _conditions(pod: Json, state: PodState, phase: str, now: float) -> Iterator[Json]:
    """Yield the conditions in stored order, with conditions of other writers."""
    stored = {condition["type"]: condition for condition in items(pod, "status", "conditions")}
    generation = metadata(pod).get("generation")
    own = {condition.type: condition for condition in conditions_of(pod, list(containers_of(pod)), state, phase)}
    for kind in (*stored, *(kind for kind in own if kind not in stored)):
        old = stored.get(kind)
        if kind == RESIZE_PENDING and kind not in own:
            continue
        if kind not in own or (
            old is not None and (own[kind].is_same_as(old) and old.get("observedGeneration") == generation)
        ):
            yield stored[kind]
        else:
            condition = own[kind]
            kept = old is not None and old.get("status") == condition.status and old.get("lastTransitionTime")
            written: Json = {
                "type": condition.type,
                "status": condition.status,
                "lastProbeTime": None,
                "lastTransitionTime": kept or timestamp(now),
            }
            optional = (
                ("observedGeneration", generation),
                ("reason", condition.reason),
                ("message", condition.message),
            )
            yield (written | {name: value for name, value in optional if value})


def _container_status(pod: Json, container: Container, state: PodState) -> Json:
    known = state.containers[container.name]
    status: Json = {
        "name": container.name,
        "state": {known.stage: _shown_state(pod, container, known)},
        "lastState": {"terminated": _terminated(pod, container, known.last)} if known.last else {},
        "ready": known.ready or (container.kind == INIT and known.ended is not None and known.ended.exit_code == 0),
        "restartCount": known.restarts,
        "image": container.image,
        "imageID": "",
        "started": known.started and known.runs,
    }
    if known.stage != WAITING or known.last is not None:
        image = container.image
        name, _, digest = image.partition("@")
        head, colon, tag = name.rpartition(":")
        repository = head if colon and "/" not in tag else name
        status["imageID"] = f"{repository}@{digest or 'sha256:' + sha256(image.encode()).hexdigest()}"
        status["containerID"] = container_id(pod, container.name, known.restarts)
    if container.kind != EPHEMERAL:
        status |= _resources(pod, container, state)
    if mounts := [_mount(mount) for mount in container.spec.get("volumeMounts") or ()]:
        status["volumeMounts"] = mounts
    return status


def _shown_state(pod: Json, container: Container, state: ContainerState) -> Json:
    if state.stage == RUNNING:
        return {"startedAt": timestamp(state.since)}
    if state.ended is not None:
        return _terminated(pod, container, state.ended)
    return {"reason": state.reason} | ({"message": state.message} if state.message else {})


def _terminated(pod: Json, container: Container, ended: Termination) -> Json:
    terminated: Json = {
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "startedAt": timestamp(ended.started) if ended.started else None,
        "finishedAt": timestamp(ended.finished) if ended.finished else None,
    }
    if ended.message:
        terminated["message"] = ended.message
    if ended.started:
        terminated["containerID"] = container_id(pod, container.name, ended.restarts)
    return terminated


def _resources(pod: Json, container: Container, state: PodState) -> Json:
    """Return the resources; while a resize is infeasible, the stored resources."""
    if state.resize_problem and (stored := stored_status(pod, container.name)) is not None:
        return {name: stored[name] for name in ("resources", "allocatedResources") if name in stored}
    resources: Json = {"resources": shown_resources(container.spec)}
    if requests := part(container.spec, "resources").get("requests"):
        resources["allocatedResources"] = requests
    return resources


def _mount(mount: Json) -> Json:
    status: Json = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        status |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return status


def conditions_of(pod: Json, containers: Sequence[Container], state: PodState, phase: str) -> Iterator[Condition]:
    """Yield the conditions in a kubelet's order."""
    if state.resize_problem:
        yield _condition(RESIZE_PENDING, holds=True, reason="Infeasible", message=state.resize_problem)
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
    if any(
        container.kind == MAIN and (states[container.name].runs or states[container.name].ended)
        for container in containers
    ):
        return _condition(kind, holds=True)
    first = [container for container in containers if container.kind in (INIT, SIDECAR)]
    incomplete = [container.name for container in first if not is_initialized(container, states[container.name])]
    if not incomplete:
        return _condition(kind, holds=True)
    message = f"containers with incomplete status: {_shown(incomplete)}"
    return _condition(kind, holds=False, reason="ContainersNotInitialized", message=message)


def _containers_ready(containers: Sequence[Container], states: States, phase: str) -> Condition:
    kind = "ContainersReady"
    if phase in _ENDED_REASONS:
        return _condition(kind, holds=False, reason=_ENDED_REASONS[phase])
    unready = [
        container.name
        for container in containers
        if container.kind not in (INIT, EPHEMERAL) and not states[container.name].ready
    ]
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
    statuses = {condition["type"]: condition.get("status") for condition in items(pod, "status", "conditions")}
    for gate in items(pod, "spec", "readinessGates"):
        kind = gate["conditionType"]
        if kind not in statuses:
            yield f"corresponding condition of pod readiness gate {quote(kind)} does not exist."
        elif statuses[kind] != "True":
            yield f'the status of pod readiness gate {quote(kind)} is not "True", but {statuses[kind]}'


def _shown(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"

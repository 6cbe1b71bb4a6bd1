"""Pods: phase, readiness, node, containers and host ports. Upstream: pkg/api/v1/pod and component-helpers.

from pilothouse.kinds import pods

pods.is_ready(pod)          its Ready condition is True
pods.has_ended(pod)         its phase is Succeeded or Failed: no container will run again
pods.is_terminating(pod)    its deletion has begun, and it has not ended
pods.is_active(pod)         neither has it ended, nor has its deletion begun
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeAlias

from pilothouse.kinds.conditions import find_condition
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.field import Path
from pilothouse.machinery.objects import Json, annotations_of
from pilothouse.machinery.times import now, parse_time

ENDED_PHASES = ("Succeeded", "Failed")
"""Phases without a successor; the pod holds no resources of its node any more."""

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
"""The fields of a pod's spec that list containers, in upstream's order."""

MIRROR_POD = "kubernetes.io/config.mirror"
"""Annotation of a mirror pod: the API object of a static pod of a kubelet."""

HostPort: TypeAlias = tuple[str, str, int]
"""(protocol, host IP, port number)"""

_ANY_ADDRESS = "0.0.0.0"


def phase_of(pod: Json) -> str:
    """Return `status.phase`; empty if unset."""
    return (pod.get("status") or {}).get("phase") or ""


def node_name(pod: Json) -> str:
    """Return `spec.nodeName`; empty until the pod is bound."""
    return (pod.get("spec") or {}).get("nodeName") or ""


def has_ended(pod: Json) -> bool:
    """Whether the phase is Succeeded or Failed. Upstream: IsPodTerminal."""
    return (pod.get("status") or {}).get("phase") in ENDED_PHASES


def is_active(pod: Json) -> bool:
    """Whether the pod counts as a replica: it has not ended and is not being deleted."""
    return not has_ended(pod) and not is_deleting(pod)


def is_terminating(pod: Json) -> bool:
    """Whether the pod is being deleted while its containers may still run. Upstream: IsPodTerminating."""
    return not has_ended(pod) and is_deleting(pod)


def ready_condition(pod: Json) -> Json:
    """Return the Ready condition; empty if the pod has none."""
    return find_condition(pod, "Ready") or {}


def is_ready(pod: Json) -> bool:
    """Whether the Ready condition is True."""
    return ready_condition(pod).get("status") == "True"


def ready_since(pod: Json) -> datetime | None:
    """Return when the pod became ready; None if it is not ready, or the condition has no time."""
    condition = ready_condition(pod)
    since = condition.get("lastTransitionTime")
    return parse_time(since) if since and condition.get("status") == "True" else None


def set_pod_condition(pod: Json, type_: str, status: str, *, reason: str = "", message: str = "") -> None:
    """Overwrite or append the condition in the form of v1.PodCondition. lastTransitionTime moves with the status."""
    condition: Json = {"type": type_, "status": status, "lastProbeTime": None, "lastTransitionTime": now()}
    condition |= {name: text for name, text in (("reason", reason), ("message", message)) if text}
    current = find_condition(pod, type_)
    if current is None:
        pod.setdefault("status", {}).setdefault("conditions", []).append(condition)
        return
    if current.get("status") == status:
        condition["lastTransitionTime"] = current.get("lastTransitionTime")
    current.clear()
    current.update(condition)


def is_available(pod: Json, min_ready_seconds: int, at: datetime) -> bool:
    """Whether the pod has been ready for `min_ready_seconds`."""
    if not is_ready(pod):
        return False
    if not min_ready_seconds:
        return True
    since = ready_since(pod)
    return since is not None and (at - since).total_seconds() >= min_ready_seconds


def next_availability(pods: Iterable[Json], min_ready_seconds: int, at: datetime) -> float | None:
    """Return the seconds until the next ready pod becomes available; None if every ready pod is available."""
    if min_ready_seconds <= 0:
        return None
    moments = (since for pod in pods if (since := ready_since(pod)) is not None)
    waits = (min_ready_seconds - (at - since).total_seconds() for since in moments)
    return min((wait for wait in waits if wait > 0), default=None)


def is_sidecar(container: Json) -> bool:
    """Whether an init container keeps running beside the main containers."""
    return container.get("restartPolicy") == "Always"


def all_containers(spec: Json) -> Iterator[Json]:
    """Yield init, main and ephemeral containers of a pod spec."""
    for field in CONTAINER_LISTS:
        yield from spec.get(field) or ()


def containers_with_path(spec: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    """Yield every container with its field path below `path`, the path of the spec."""
    for field in CONTAINER_LISTS:
        for position, container in enumerate(spec.get(field) or ()):
            yield path.child(field).index(position), container


def running_containers(spec: Json) -> Iterator[Json]:
    """Yield the main containers and the sidecars: the containers that run as long as the pod does."""
    yield from spec.get("containers") or ()
    yield from filter(is_sidecar, spec.get("initContainers") or ())


def sidecar_names(spec: Json) -> set[str]:
    return {container.get("name") or "" for container in spec.get("initContainers") or () if is_sidecar(container)}


def host_ports(spec: Json) -> Iterator[HostPort]:
    """Yield the ports of the node that the pod's running containers bind."""
    for container in running_containers(spec):
        for port in container.get("ports") or ():
            if number := port.get("hostPort"):
                yield port.get("protocol") or "TCP", port.get("hostIP") or _ANY_ADDRESS, number


def host_port_conflicts(address: str, taken: Iterable[str]) -> bool:
    """Whether binding a port at `address` conflicts with bindings of the same port at the `taken` addresses.

    0.0.0.0 binds every address and conflicts with all of them.
    """
    others = tuple(taken)
    return bool(others) and (address == _ANY_ADDRESS or any(other in (address, _ANY_ADDRESS) for other in others))


def is_mirror_pod(pod: Json) -> bool:
    return MIRROR_POD in annotations_of(pod)

"""The pods resource: names, selectable fields and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.storage.object import Fields
from pilothouse.kinds.conditions import find_condition, is_true
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.pods import ENDED_PHASES, sidecar_names
from pilothouse.kube.core.pods.strategy import PodStrategy
from pilothouse.kube.served import field_conversion
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import age
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.fields import Requirement

_POD_SPEC = "io.k8s.api.core.v1.PodSpec"
_POD_STATUS = "io.k8s.api.core.v1.PodStatus"
_NONE = "<none>"
_MESSAGES = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


@dataclass(slots=True)
class Summary:
    """Columns of a pod. `restarted` is the end of the latest terminated container run."""

    reason: str
    containers: int
    ready: int = 0
    restarts: int = 0
    restarted: str = ""

    def count_restarts(self, status: Json) -> None:
        self.restarts += status.get("restartCount") or 0
        ended = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.restarted = max(self.restarted, ended)


def summarize(pod: Json) -> Summary:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = sidecar_names(spec)
    summary = Summary(_first_reason(pod, status), len(spec.get("containers") or ()) + len(sidecars))
    running = Summary("", 0)
    initializing = _look_at_init_containers(spec, status, sidecars, summary, running)
    if not initializing or is_true(pod, "Initialized"):
        summary.restarts, summary.restarted = running.restarts, running.restarted
        _look_at_containers(pod, status, summary)
    if is_deleting(pod):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif status.get("phase") not in ENDED_PHASES:
            summary.reason = "Terminating"
    return summary


def _first_reason(pod: Json, status: Json) -> str:
    scheduled = find_condition(pod, "PodScheduled") or {}
    if scheduled.get("reason") == "SchedulingGated":
        return "SchedulingGated"
    return status.get("reason") or status.get("phase") or ""


def _look_at_init_containers(spec: Json, status: Json, sidecars: set[str], summary: Summary, running: Summary) -> bool:
    """Report whether the pod is still initializing. `running` counts restarts of sidecars only."""
    total = len(spec.get("initContainers") or ())
    for position, container in enumerate(status.get("initContainerStatuses") or ()):
        summary.count_restarts(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            running.count_restarts(container)
        terminated = (container.get("state") or {}).get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        waiting = ((container.get("state") or {}).get("waiting") or {}).get("reason")
        if terminated is not None:
            summary.reason = f"Init:{_end_reason(terminated)}"
        elif waiting and waiting != "PodInitializing":
            summary.reason = f"Init:{waiting}"
        else:
            summary.reason = f"Init:{position}/{total}"
        return True
    return False


def _look_at_containers(pod: Json, status: Json, summary: Summary) -> None:
    has_running, error = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        summary.count_restarts(container)
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if waiting:
            summary.reason = waiting
        elif terminated is not None:
            summary.reason = _end_reason(terminated)
            error = summary.reason if terminated.get("exitCode") else error
        elif container.get("ready") and state.get("running") is not None:
            has_running = True
            summary.ready += 1
    if summary.reason == "Completed":
        if has_running and is_true(pod, "Ready"):
            summary.reason = "Running"
        elif error or has_running:
            summary.reason = error or "NotReady"


def _end_reason(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _ready(pod: Json) -> str:
    summary = summarize(pod)
    return f"{summary.ready}/{summary.containers}"


def _restarts(pod: Json) -> str:
    summary = summarize(pod)
    if not summary.restarts or not summary.restarted:
        return str(summary.restarts)
    return f"{summary.restarts} ({age(summary.restarted)} ago)"


def _row_conditions(pod: Json) -> list[Json]:
    phase = (pod.get("status") or {}).get("phase")
    if phase not in ENDED_PHASES:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _MESSAGES[phase]}]


def _field(part: str, name: str) -> Callable[[Json], str]:
    return lambda pod: (pod.get(part) or {}).get(name) or _NONE


def _readiness_gates(pod: Json) -> str:
    gates = (pod.get("spec") or {}).get("readinessGates") or ()
    met = sum(is_true(pod, gate.get("conditionType") or "") for gate in gates)
    return f"{met}/{len(gates)}" if gates else _NONE


COLUMNS = [
    NAME,
    Column("Ready", _ready, description="The aggregate readiness state of this pod for accepting traffic."),
    Column(
        "Status",
        lambda pod: summarize(pod).reason,
        description="The aggregate status of the containers in this pod.",
        row_conditions=_row_conditions,
    ),
    Column(
        "Restarts",
        _restarts,
        description="The number of times the containers in this pod have been restarted "
        "and when the last container in this pod has restarted.",
    ),
    AGE,
    Column("IP", _field("status", "podIP"), priority=1, documented=(_POD_STATUS, "podIP")),
    Column("Node", _field("spec", "nodeName"), priority=1, documented=(_POD_SPEC, "nodeName")),
    Column(
        "Nominated Node",
        _field("status", "nominatedNodeName"),
        priority=1,
        documented=(_POD_STATUS, "nominatedNodeName"),
    ),
    Column("Readiness Gates", _readiness_gates, priority=1, documented=(_POD_SPEC, "readinessGates")),
]


def _fields(pod: Json) -> Fields:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    return metadata_fields(pod) | {
        "spec.nodeName": spec.get("nodeName") or "",
        "spec.restartPolicy": spec.get("restartPolicy") or "",
        "spec.schedulerName": spec.get("schedulerName") or "",
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase") or "",
        "status.podIP": status.get("podIP") or "",
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


PODS = Resource(
    names=Names("pods", kind="Pod", short=["po"], categories=["all"]),
    strategy=PodStrategy(),
    fields=_fields,
    indexed_fields=("spec.nodeName", "metadata.name", "status.podIP", "status.phase"),
    extra_field_labels=frozenset({"status.podIPs"}),
    returns_deleted_object=True,
    columns=COLUMNS,
)

_known_field = field_conversion(PODS, PODS.kind)


def convert_field(requirement: Requirement) -> Requirement | None:
    """Reject unknown fields. `spec.host` is the former name of spec.nodeName."""
    if requirement.field == "spec.host":
        requirement = replace(requirement, field="spec.nodeName")
    return _known_field(requirement)

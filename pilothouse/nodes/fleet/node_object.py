"""Node objects: creation, status, and events of their conditions."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from pilothouse.apiserver.server.features import enabled
from pilothouse.client.events.event import NORMAL, timestamp
from pilothouse.kinds.conditions import Condition
from pilothouse.kinds.nodes import DECLARABLE_FEATURES
from pilothouse.machinery import release
from pilothouse.machinery.objects import Json, annotations_of, items, labels_of, name_of, part
from pilothouse.nodes.behavior.model import PREFIX, SIMULATED, NodeBehavior
from pilothouse.nodes.config import SimulationConfig
from pilothouse.nodes.pods.pod_events import PodEvent

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage")

_MEMORY = (
    ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
)
_DISK = (
    ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
)
_PIDS = (
    ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_NETWORK = (
    ("NoRouteCreated", "simulated: the network is not set up"),
    ("RouteCreated", "simulated: the network is set up"),
)
_READY = (
    ("KubeletReady", "kubelet is posting ready status"),
    ("KubeletNotReady", "simulated: the node is not ready"),
)
"""(reason, message) of a condition: healthy, unhealthy."""
_OF_KUBELETS = "Kubelet"


def node_name(number: int) -> str:
    return f"node-{number}"


def is_simulated(node: Json) -> bool:
    return annotations_of(node).get(SIMULATED) == "true"


def new_node(number: int, config: SimulationConfig) -> Json:
    """Return the node with this number, counted from 1, without addresses."""
    name = node_name(number)
    labels = {
        "topology.kubernetes.io/region": "simulated",
        "topology.kubernetes.io/zone": f"zone-{(number - 1) % max(config.zones, 1) + 1}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own_labels(name) | labels, "annotations": {SIMULATED: "true"}},
        "spec": {},
    }


def own_labels(name: str) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }


def labels_to_add(node: Json) -> dict[str, str]:
    """Return the kubelet labels that the node lacks."""
    own = labels_of(node)
    return {name: value for name, value in own_labels(name_of(node)).items() if name not in own}


def address_of(node: Json) -> str:
    """Return the node's InternalIP; empty if unset."""
    addresses = items(node, "status", "addresses")
    found: str = next((address["address"] for address in addresses if address.get("type") == "InternalIP"), "")
    return found


def cidr_of(node: Json | None) -> str:
    """Return the node's podCIDR; empty if unset."""
    cidr: str = ((node or {}).get("spec") or {}).get("podCIDR") or ""
    return cidr


def node_status(
    node: Json, address: str, behavior: NodeBehavior, config: SimulationConfig, now: float, *, heartbeat: bool = False
) -> Json:
    """Return the status of the node. Existing capacity is kept, so the creator of a node decides; annotations such as
    `pilothouse.dev/cpu: "8"` set the capacity, too."""
    stored: Json = node.get("status") or {}
    default = {"cpu": config.cpu, "memory": config.memory, "pods": str(config.pods), "ephemeral-storage": "1Ti"}
    annotations = annotations_of(node)
    capacity = {
        **{name: annotations.get(f"{PREFIX}{name}") or default[name] for name in _RESOURCES},
        **(stored.get("capacity") or {}),
    }
    features = [name for name in DECLARABLE_FEATURES if enabled(name)] if enabled("NodeDeclaredFeatures") else []
    return {
        **({"declaredFeatures": features} if features else {}),
        "capacity": capacity,
        "allocatable": {**capacity, **(stored.get("allocatable") or {})},
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": labels_of(node).get("kubernetes.io/hostname") or name_of(node)},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": config.kubelet_port}},
        "nodeInfo": stored.get("nodeInfo") if part(stored, "nodeInfo").get("machineID") else _node_info(node),
        "conditions": list(_conditions(stored, behavior, now, heartbeat=heartbeat)),
    }


def _conditions(stored: Json, behavior: NodeBehavior, now: float, *, heartbeat: bool) -> Iterator[Json]:
    old = {condition["type"]: condition for condition in stored.get("conditions") or ()}
    for condition in wanted_conditions(behavior):
        before = old.get(condition.type) or {}
        same = condition.is_same_as(before)
        yield {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastHeartbeatTime": timestamp(now) if heartbeat or not same else before.get("lastHeartbeatTime"),
            "lastTransitionTime": before.get("lastTransitionTime")
            if before.get("status") == condition.status
            else timestamp(now),
        }


def wanted_conditions(behavior: NodeBehavior) -> Iterator[Condition]:
    """Yield the conditions for the behaviour, in a kubelet's order."""
    conditions = (
        ("MemoryPressure", behavior.memory_pressure, _MEMORY),
        ("DiskPressure", behavior.disk_pressure, _DISK),
        ("PIDPressure", behavior.pid_pressure, _PIDS),
        ("NetworkUnavailable", behavior.network_unavailable, _NETWORK),
        ("Ready", not behavior.not_ready, _READY),
    )
    for kind, holds, (if_so, if_not) in conditions:
        yield Condition(kind, "True", *if_so) if holds else Condition(kind, "False", *if_not)


def _node_info(node: Json) -> Json:
    identity = sha256(name_of(node).encode()).hexdigest()
    return {
        "machineID": identity[:32],
        "systemUUID": f"{identity[:8]}-{identity[8:12]}-{identity[12:16]}-{identity[16:20]}-{identity[20:32]}",
        "bootID": f"{identity[32:40]}-{identity[40:44]}-{identity[44:48]}-{identity[48:52]}-{identity[52:64]}",
        "kernelVersion": "6.12.0-simulated",
        "osImage": "Simulated Linux",
        "containerRuntimeVersion": "containerd://2.1.0",
        "kubeletVersion": release.current().git_version,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def node_condition_events(before: Json, after: Json) -> Iterator[PodEvent]:
    """Yield an event for each changed kubelet condition; initial conditions yield none."""
    statuses = {condition["type"]: condition["status"] for condition in items(before, "status", "conditions")}
    for condition in items(after, "status", "conditions"):
        reason = condition.get("reason") or ""
        if statuses.get(condition["type"], condition["status"]) != condition["status"] and reason.startswith(
            _OF_KUBELETS
        ):
            event_reason = f"Node{reason.removeprefix(_OF_KUBELETS)}"
            yield PodEvent(NORMAL, event_reason, f"Node {name_of(after)} status is now: {event_reason}")
